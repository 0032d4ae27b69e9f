// A host for a test file: the real program, its own folder, a scripted model, no network.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const program = process.env.GREENROOM ?? join(here, "../../../target/debug/greenroom");
const READY = /greenroom is ready: (https?:\/\/[^#\s]+?)\/?#code=(\S+)/;

export class Host {
  /** Tokens with fewer rights than the admin's. */
  tokens = { watcher: randomBytes(24).toString("hex"), website: randomBytes(24).toString("hex") };

  /** `more` is prepended to the configuration. */
  static async start({ configured = true, config = "greenroom.toml", more = "" } = {}) {
    const host = new Host();
    host.folder = mkdtempSync(join(tmpdir(), "greenroom-web-"));
    mkdirSync(join(host.folder, "stage"));
    if (configured) {
      const text = readFileSync(join(here, config), "utf8");
      for (const [name, token] of Object.entries(host.tokens)) writeFileSync(join(host.folder, `${name}-token`), token);
      writeFileSync(join(host.folder, "greenroom.toml"), `${more}\n${text.replace("STAGE", join(here, "runners/stage.py"))}`);
    }
    await host.begin("127.0.0.1:0");
    return host;
  }

  /** Starts the program and reads the URL that it prints. */
  async begin(listen) {
    const environment = { PATH: process.env.PATH, HOME: this.folder };
    this.process = spawn(program, ["serve", "--data", "data", "--listen", listen], {
      cwd: this.folder,
      env: environment,
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.ended = new Promise((resolve) => this.process.once("exit", resolve));
    const lines = [];
    for await (const line of createInterface({ input: this.process.stderr })) {
      lines.push(line);
      const [, url, code] = READY.exec(line) ?? [];
      if (!url) continue;
      this.url = url;
      this.code = code;
      break;
    }
    this.process.stderr.resume();
    if (!this.url) throw new Error(`the host did not start:\n${lines.join("\n")}`);
    this.token = readFileSync(join(this.folder, "data/admin-token"), "utf8").trim();
    if (this.hasStage()) await this.runnerIsReady();
  }

  hasStage() {
    try {
      return readFileSync(join(this.folder, "greenroom.toml"), "utf8").includes("stage.py");
    } catch {
      return false;
    }
  }

  async runnerIsReady() {
    await eventually("the runner is ready", async () => {
      const { items } = await this.get("/v1/runners");
      return items.some((runner) => runner.plugin === "test/stage" && runner.status === "ready");
    });
  }

  /** Kills the process. */
  async kill() {
    this.process.kill("SIGKILL");
    await this.ended;
  }

  /** Restarts on the same address and data. */
  async comeBack() {
    await this.begin(new URL(this.url).host);
  }

  async end() {
    this.process.kill("SIGTERM");
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }

  async ask(method, path, body) {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    const answer = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  get(path) {
    return this.ask("GET", path);
  }

  /** Sends a message and waits until its run has ended. */
  async say(agent, text, conversation) {
    const { run_id } = await this.send(agent, text, conversation);
    await this.runEnded(run_id);
    return run_id;
  }

  /** Sends a message without waiting for its run. */
  send(agent, text, conversation) {
    return this.ask("POST", "/v1/events", {
      event_type: "message.received",
      agent,
      conversation_id: conversation,
      actor: { actor_type: "user", actor_id: "tester" },
      input: { text: typeof text === "string" ? text : JSON.stringify(text) },
    });
  }

  async runEnded(id) {
    const over = ["completed", "failed", "cancelled", "timeout"];
    return eventually(`${id} ends`, async () => {
      const run = await this.get(`/v1/runs/${id}`);
      return over.includes(run.status) && run;
    }, 60_000);
  }

  /** Opens a gate of the stage runner. */
  open(gate) {
    writeFileSync(join(this.folder, "stage", gate), "");
  }
}

/** Polls until a value is truthy and returns it; fails with its description. */
export async function eventually(what, look, timeout = 30_000) {
  const end = performance.now() + timeout;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > end) throw new Error(`${what}: not within ${timeout / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

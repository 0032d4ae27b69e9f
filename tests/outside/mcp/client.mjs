// A client under test for MCP's conformance suite: starts a host with the suite's server in its configuration, signs
// in as an operator would, and calls tools from a run. Everything goes through the public interface.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const program = process.env.GREENROOM_PROGRAM;
const runners = process.env.GREENROOM_RUNNERS;
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const server = process.argv.at(-1);
// More sign-ins than this would be a loop.
const SIGN_INS_MAX = 3;
const WAIT_MS = 90_000;

// What each scenario wants called; a missing one gets one call of each tool.
const CALLS = {
  initialize: [],
  "request-metadata": [],
  tools_call: [{ name: "add_numbers", arguments: { a: 5, b: 3 } }],
  "sep-2322-client-request-state": ["test_mrtr_echo_state", "test_mrtr_unrelated", "test_mrtr_no_state", "test_mrtr_no_result_type"].map((name) => ({ name, arguments: {} })),
};

const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));

function configuration() {
  const quoted = (value) => JSON.stringify(value);
  const oauth = [`client_metadata_url = "https://conformance-test.local/client-metadata.json"`];
  if (context.client_id) oauth.push(`client_id = ${quoted(context.client_id)}`);
  if (context.client_secret) oauth.push(`client_secret = { env = "CLIENT_SECRET" }`, `issuer = ${quoted(context.issuer ?? context.auth_server ?? "ISSUER")}`);
  if (scenario.startsWith("auth/client-credentials")) oauth.push(`grant = "client_credentials"`);
  return `
[store]
sync = "normal"
[runners.puppet]
command = ["python3", ${quoted(join(runners, "puppet.py"))}]
dir = "puppet"
[tools.mcp]
url = ${quoted(server)}
allow_private = true
risk = "read"
timeout_s = 30
[tools.mcp.oauth]
${oauth.join("\n")}
[agents.puppet]
runner = "plugin:test/puppet/main"
events = []
deadline_s = 90
grant = { tools = ["mcp.*"] }
`;
}

class Host {
  async start() {
    this.folder = mkdtempSync(join(tmpdir(), "mcp-client-"));
    mkdirSync(join(this.folder, "puppet"));
    writeFileSync(join(this.folder, "greenroom.toml"), await withIssuer(configuration()));
    const env = { ...process.env, CLIENT_SECRET: context.client_secret ?? "" };
    this.process = spawn(program, ["serve", "--config", "greenroom.toml", "--data", "data", "--listen", "127.0.0.1:0"], { cwd: this.folder, env, stdio: ["ignore", "ignore", "pipe"] });
    this.process.stderr.pipe(process.stderr);
    this.ended = new Promise((end) => this.process.once("exit", end));
    const ready = join(this.folder, "data/host.json");
    await until("the host", () => existsSync(ready) && readFileSync(ready).length > 0);
    this.url = JSON.parse(readFileSync(ready)).url;
    this.token = readFileSync(join(this.folder, "data/admin-token"), "utf8").trim();
  }

  async api(path, body) {
    const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
    const init = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
    const response = await fetch(`${this.url.replace(/\/$/, "")}${path}`, init);
    const answer = await response.json();
    if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer;
  }

  async state() {
    const servers = (await this.api("/v1/tool-servers")).items;
    return servers.find((one) => one.name === "mcp");
  }

  /** As an operator does: the command prints an address, a browser opens it. */
  async signIn() {
    const command = spawn(program, ["sign-in", "mcp", "--data", "data"], { cwd: this.folder, stdio: ["ignore", "pipe", "inherit"] });
    const done = new Promise((end) => command.once("exit", end));
    let opened = null;
    command.stdout.setEncoding("utf8");
    command.stdout.on("data", (text) => {
      const address = text.split("\n").find((line) => line.startsWith("http"));
      // `fetch` follows the redirect to the command's own port.
      if (address && !opened) opened = fetch(address).catch(() => {});
    });
    const code = await done;
    await opened;
    if (code !== 0) throw new Error(`the sign-in failed with ${code}`);
  }

  async call(tool, args) {
    const name = `out-${crypto.randomUUID()}`;
    const steps = [["call", "tools.call", { tool_name: `mcp.${tool}`, parameters: args, tool_call_id: name }, name], ["end"]];
    const sent = await this.api("/v1/events", { source: "api", event_type: "message.received", agent: "puppet", conversation_id: "c1", input: { text: JSON.stringify(steps) } });
    await until("the run", async () => {
      const asked = await this.api("/v1/approvals?status=pending");
      for (const one of asked.items) {
        await this.api(`/v1/approvals/${one.approval_id}`, { decision: "allow", nonce: one.nonce, ...(one.payload.requested_schema ? { values: {} } : {}) });
      }
      return !["queued", "running"].includes((await this.api(`/v1/runs/${sent.run_id}`)).status);
    });
    return JSON.parse(readFileSync(join(this.folder, "puppet", name)));
  }

  async stop() {
    this.process?.kill("SIGTERM");
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The suite tells a client its issuer in some scenarios; in others an operator would read it in the metadata. */
async function withIssuer(text) {
  if (!text.includes(`"ISSUER"`)) return text;
  const { origin, pathname } = new URL(server);
  const metadata = await (await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`)).json();
  return text.replace(`"ISSUER"`, JSON.stringify(metadata.authorization_servers[0]));
}

async function until(what, check) {
  for (const end = Date.now() + WAIT_MS; Date.now() < end; await pause(50)) {
    if (await check()) return;
  }
  throw new Error(`no end of waiting for ${what}`);
}

let signIns = 0;

/** Waits until the server is connected, and signs in where it wants that. */
async function connected(host) {
  for (;;) {
    let state;
    await until("the server", async () => (state = await host.state()).status !== "starting");
    if (state.status === "ready") return;
    if (state.status !== "sign_in_required" || signIns >= SIGN_INS_MAX) throw new Error(`${state.status}: ${state.last_error}`);
    signIns += 1;
    const before = state.restarts;
    await host.signIn();
    await until("another attempt", async () => {
      const { status, restarts } = await host.state();
      return status === "ready" || (restarts > before && status !== "starting");
    });
  }
}

async function calls(host) {
  const tools = (await host.api("/v1/tools")).items.filter((tool) => tool.source === "mcp:mcp" || tool.tool_name.startsWith("mcp."));
  if (context.toolCalls) return context.toolCalls;
  if (scenario === "json-schema-2020-12-preservation") {
    const { parameters } = tools.find((tool) => "$defs" in tool.parameters);
    const echo = tools.find((tool) => "schema" in (tool.parameters.properties ?? {}));
    return [{ name: echo.tool_name.slice(4), arguments: { schema: parameters } }];
  }
  return CALLS[scenario] ?? tools.map((tool) => ({ name: tool.tool_name.slice(4), arguments: sample(tool.parameters) }));
}

/** Arguments that fit: something for every required one. */
function sample({ properties = {}, required = [] }) {
  const some = { string: "x", integer: 1, number: 1, boolean: true, object: {}, array: [], null: null };
  return Object.fromEntries(required.map((name) => [name, some[properties[name]?.type] ?? "x"]));
}

const host = new Host();
try {
  await host.start();
  await connected(host);
  for (const { name, arguments: args } of await calls(host)) {
    for (;;) {
      const answer = await host.call(name, args);
      const error = answer.error ?? answer.result?.error;
      if (error?.code !== "SIGN_IN_REQUIRED" || signIns >= SIGN_INS_MAX) {
        console.log(name, JSON.stringify(answer));
        break;
      }
      signIns += 1;
      await host.signIn();
      await connected(host);
    }
  }
} catch (error) {
  console.error(String(error));
  process.exitCode = 1;
} finally {
  await host.stop();
}

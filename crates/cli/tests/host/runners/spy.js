// A runner that tries what the event's text says, a JSON list of [deed, target], and tells how each went.
const fs = require("fs");
const os = require("os");
const { execFileSync } = require("child_process");

function through(path) {
  const link = `link-${fs.readdirSync(".").length}`;
  fs.symlinkSync(path, link);
  deeds.read(link);
}

const deeds = {
  through, // by way of a link of one's own
  read: (path) => fs.readSync(fs.openSync(path), Buffer.alloc(1)),
  list: (path) => fs.readdirSync(path),
  write: (path) => fs.writeFileSync(path, "x"),
  signal: (pid) => process.kill(Number(pid), 0),
  child: (code) => execFileSync(process.execPath, ["-e", code]),
  temp: (text) => fs.writeFileSync(os.tmpdir() + "/file", text),
  tls: () => require("tls").createSecureContext(),
  variable: (name) => { if (!(name in process.env)) throw { code: "KeyError" }; },
};

function tried([deed, target]) {
  try { deeds[deed](target); return "done"; } catch ({ code }) { return ["EACCES", "EPERM", "ENOENT", "EROFS"].includes(code) ? "refused" : code; }
}

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    send({ id, result: { protocol_version: "1", plugin: { author: "test", name: "spy", version: "1" } } });
  } else if (method === "list_agent_runners") {
    send({ id, result: { runners: [{ id: "plugin:test/spy/main", name: "main", label: { en_US: "Spy" } }] } });
  } else if (method === "run_agent") {
    const { run_id, input } = params.context;
    const message = { role: "assistant", content: JSON.stringify(JSON.parse(input.text).map(tried)) };
    send({ method: "run.result", params: { run_id, type: "run.completed", data: { message } } });
    send({ id, result: {} });
  } else if (id !== undefined) {
    send({ id, result: {} });
  }
});

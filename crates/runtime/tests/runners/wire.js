// The smallest runner for Node: answers every run with what it could see of the machine.
const fs = require("fs");
const os = require("os");
const readline = require("readline");
const { execFileSync } = require("child_process");

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const attempt = (action) => { try { return "ok: " + action(); } catch (error) { return error.code || String(error); } };

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    send({ id, result: { protocol_version: "1", plugin: { author: "test", name: "node", version: "1" } } });
  } else if (method === "list_agent_runners") {
    send({ id, result: { runners: [{ id: "plugin:test/node/main", name: "main", label: { en_US: "Node" } }] } });
  } else if (method === "run_agent") {
    const run_id = params.context.run_id;
    const seen = {
      secret: attempt(() => fs.readFileSync(params.context.input.text)),
      child: attempt(() => execFileSync(process.execPath, ["-p", "6*7"]).toString().trim()),
      temp: attempt(() => fs.writeFileSync(os.tmpdir() + "/file", "x")),
      crypto: attempt(() => require("crypto").randomBytes(2).length),
    };
    send({ method: "run.result", params: { run_id, type: "message.completed", data: { message: { role: "assistant", content: JSON.stringify(seen) } } } });
    send({ id, result: {} });
  } else if (id !== undefined) {
    send({ id, result: {} });
  }
});

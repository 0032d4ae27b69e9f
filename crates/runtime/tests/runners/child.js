// What a JavaScript program does: code that gets compiled, WebAssembly, workers, children, files.
const { execFileSync } = require("node:child_process");
const { Worker } = require("node:worker_threads");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

function hot(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum = (sum + i * 7) % 1000003;
  return sum;
}
const wasm = new WebAssembly.Module(Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0]));
const file = path.join(os.tmpdir(), "x");
fs.writeFileSync(file, "text");
const worker = new Worker("require('node:worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
worker.on("message", (answer) => {
  console.log(JSON.stringify({
    hot: hot(3_000_000) === hot(3_000_000),
    wasm: wasm instanceof WebAssembly.Module,
    worker: answer,
    child: execFileSync(process.execPath, ["-p", "6 * 7"]).toString().trim(),
    file: fs.readFileSync(file, "utf8"),
  }));
});

// Prints the compressed size of each page's first load and fails over the limit.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const LIMIT_BYTES = 600 * 1024;
const dist = new URL("../dist", import.meta.url).pathname;
const manifest = JSON.parse(readFileSync(join(dist, ".vite/manifest.json"), "utf8"));
const gzipped = (file) => gzipSync(readFileSync(join(dist, file))).length;

/** The files of a chunk and of all its static imports. */
function filesOf(key, seen = new Set()) {
  if (seen.has(key)) return [];
  seen.add(key);
  const chunk = manifest[key];
  return [chunk.file, ...(chunk.css ?? []), ...(chunk.imports ?? []).flatMap((next) => filesOf(next, seen))];
}

const pages = Object.keys(manifest).filter((key) => key.startsWith("src/pages/") && manifest[key].isDynamicEntry);
const shell = ["index.html", ...filesOf("index.html")];
const sizeOf = (files) => [...new Set(files)].reduce((sum, file) => sum + gzipped(file), 0);
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;

console.log(`\nfirst load, gzipped (limit ${kib(LIMIT_BYTES)}):`);
console.log(`  ${"shell".padEnd(34)} ${kib(sizeOf(shell))}`);
let largest = 0;
for (const page of pages) {
  const size = sizeOf([...shell, ...filesOf(page)]);
  largest = Math.max(largest, size);
  console.log(`  ${page.replace("src/pages/", "").padEnd(34)} ${kib(size)}`);
}
const all = readdirSync(join(dist, "assets")).map((name) => `assets/${name}`);
console.log(`  ${"everything there is".padEnd(34)} ${kib(sizeOf(all))}`);
if (largest > LIMIT_BYTES) {
  console.error(`error: the largest page needs ${kib(largest)} at first load, more than ${kib(LIMIT_BYTES)}`);
  process.exit(1);
}

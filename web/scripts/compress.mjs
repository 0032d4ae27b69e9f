// Compresses the text files in `dist` for embedding (`NAME.gz` instead of `NAME`), except index.html.
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, gzipSync } from "node:zlib";

const dist = new URL("../dist", import.meta.url).pathname;
const TEXTS = /\.(js|mjs|css|svg|json|txt|webmanifest)$/;

// The manifest is for the build only.
rmSync(join(dist, ".vite"), { recursive: true, force: true });

let before = 0;
let after = 0;
for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !TEXTS.test(entry.name)) continue;
  const path = join(entry.parentPath, entry.name);
  const plain = readFileSync(path);
  const packed = gzipSync(plain, { level: constants.Z_BEST_COMPRESSION });
  writeFileSync(`${path}.gz`, packed);
  rmSync(path);
  before += plain.length;
  after += packed.length;
}
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
console.log(`\ncompressed: ${kib(before)} to ${kib(after)}`);

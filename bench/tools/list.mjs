// Installs every server of a table, asks it for its tools, and prints them all: `list.mjs SERVERS.tsv CACHE`.
// A server gets its own dummy settings and a home of its own, nothing else; no script of a package is run at
// installation; a server that does not answer is left out.
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const AT_ONCE = 4;
const INSTALL_MS = 240_000;
const ANSWER_MS = 60_000;
const PAGES_MAX = 100;
const [table, cache] = process.argv.slice(2);

const servers = readFileSync(table, 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => line.split('\t'))
  .map(([name, spec, args, env]) => ({ name, spec, args: listed(args), env: listed(env) }));

function listed(text) {
  return text === '-' ? [] : text.split(' ');
}

/** The tools of a server as it was asked once with these settings. */
async function tools(server) {
  const kept = join(cache, `${server.name}.json`);
  if (existsSync(kept)) {
    const { settings, tools } = JSON.parse(readFileSync(kept, 'utf8'));
    if (settings === JSON.stringify(server)) return tools;
  }
  const folder = mkdtempSync(join(tmpdir(), 'tool-server-'));
  try {
    await install(server.spec, folder);
    const tools = await ask(server, folder);
    writeFileSync(`${kept}.new`, JSON.stringify({ settings: JSON.stringify(server), tools }));
    renameSync(`${kept}.new`, kept);
    return tools;
  } finally {
    // What a server leaves behind when it dies may still be written to; the folder is a temporary one.
    try { rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }); } catch { /* See above. */ }
  }
}

async function install(spec, folder) {
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  const what = ['install', spec, '--prefix', folder, '--ignore-scripts', '--prefer-offline', ...quiet];
  await promisify(execFile)('npm', what, { timeout: INSTALL_MS });
}

async function ask({ name, spec, args, env }, folder) {
  const put = (text) => text.replaceAll('{tmp}', folder);
  const pairs = env.map(put).map((pair) => pair.split(/=(.*)/s).slice(0, 2));
  const child = spawn(process.execPath, [program(spec, folder), ...args.map(put)], {
    cwd: folder,
    detached: true,
    env: { PATH: process.env.PATH, HOME: folder, ...Object.fromEntries(pairs) },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (text) => { said = (said + text).slice(-2000); });
  child.stdin.on('error', () => {});
  let clock;
  const lost = new Promise((_, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`ended with ${code}: ${said.trim().slice(-200)}`)));
    clock = setTimeout(() => reject(new Error(`no answer in time: ${said.trim().slice(-200)}`)), ANSWER_MS);
  });
  lost.catch(() => {});
  try {
    const found = await list(child, lost);
    return found.map((tool) => ({
      name: `${name}.${tool.name}`,
      description: tool.description ?? '',
      input_schema: tool.inputSchema,
    }));
  } finally {
    clearTimeout(clock);
    try { process.kill(-child.pid, 'SIGKILL'); } catch { /* It has ended. */ }
  }
}

function program(spec, folder) {
  const at = join(folder, 'node_modules', spec.slice(0, spec.lastIndexOf('@')));
  const { bin } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8'));
  return join(at, typeof bin === 'string' ? bin : Object.values(bin)[0]);
}

/** All pages of `tools/list`. */
async function list(child, lost) {
  const waiting = new Map();
  createInterface({ input: child.stdout }).on('line', (line) => {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return; // Some servers print more than the protocol.
    }
    if (message.method === undefined) waiting.get(message.id)?.(message);
    else if (message.id !== undefined) send({ id: message.id, result: { roots: [] } });
  });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  let id = 0;
  const call = (method, params) => {
    id += 1;
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    send({ id, method, params });
    return Promise.race([answered, lost]);
  };
  const clientInfo = { name: 'greenroom-bench', version: '1' };
  await call('initialize', { protocolVersion: '2025-06-18', capabilities: { roots: {} }, clientInfo });
  send({ method: 'notifications/initialized' });
  const tools = [];
  let cursor;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { result, error } = await call('tools/list', cursor === undefined ? {} : { cursor });
    if (error) throw new Error(error.message);
    tools.push(...result.tools);
    cursor = result.nextCursor;
    if (cursor === undefined) break;
  }
  return tools;
}

const all = new Map();
const left = [...servers];
async function work() {
  for (let server = left.shift(); server !== undefined; server = left.shift()) {
    try {
      const found = await tools(server);
      all.set(server.name, found);
      console.error(`${server.name}: ${found.length} tools`);
    } catch (error) {
      console.error(`${server.name}: left out: ${error.message.slice(0, 300)}`);
    }
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
const sorted = servers.flatMap(({ name }) => all.get(name) ?? []);
console.error(`${sorted.length} tools of ${all.size} servers`);
process.stdout.write(`${JSON.stringify(sorted)}\n`, () => process.exit(0));

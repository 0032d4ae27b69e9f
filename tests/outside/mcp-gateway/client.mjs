// The MCP gateway with the TypeScript SDK, unmodified. Arguments: address of the gateway, run token, address of the
// host, admin token.
import assert from "node:assert/strict"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"

const [gateway, token, host, admin] = process.argv.slice(2)
const headers = { authorization: `Bearer ${token}` }

async function connect() {
  const client = new Client({ name: "test", version: "1" })
  const transport = new StreamableHTTPClientTransport(new URL(gateway), { requestInit: { headers } })
  await client.connect(transport)
  return { client, transport }
}

const said = (result) => JSON.parse(result.content[0].text)

async function api(path, body) {
  const answer = await fetch(host + path, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
    body: body && JSON.stringify(body),
  })
  assert.ok(answer.ok, `${path}: ${answer.status}`)
  return answer.json()
}

async function approval() {
  for (;;) {
    const { items } = await api("/v1/approvals?status=pending")
    if (items.length) return items[0]
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const { client, transport } = await connect()
assert.equal(client.getServerVersion().name, "greenroom")
assert.ok(transport.sessionId)
const { tools } = await client.listTools()
const names = tools.map((tool) => tool.name)
for (const name of ["project_cli", "skill.read", "state_get", "artifact_create", "request_action"]) {
  assert.ok(names.includes(name), `${name} is not among ${names}`)
}

const value = { scope: "conversation", key: "k", value: { a: [1, "二"] } }
assert.deepEqual(said(await client.callTool({ name: "state_set", arguments: value })), { version: 1 })
const got = await client.callTool({ name: "state_get", arguments: { scope: "conversation", key: "k" } })
assert.deepEqual(said(got).value, { a: [1, "二"] })

const refused = await client.callTool({ name: "state_get", arguments: { scope: "subject", key: "k" } })
assert.equal(refused.isError, true)
await assert.rejects(client.callTool({ name: "nothing", arguments: {} }), /there is no tool/)

const { resources } = await client.listResources()
assert.deepEqual(resources.map((resource) => resource.uri), ["skill://booking/SKILL.md"])
const { contents } = await client.readResource({ uri: resources[0].uri })
assert.match(contents[0].text, /How to book/)

// A tool of a module that may change something waits for an approval, and is carried out once it is given.
const action = { name: "request_action", arguments: { action: "message.send", payload: { text: "hi" } } }
const news = []
const waiting = client.callTool(action, undefined, { onprogress: (progress) => news.push(progress), timeout: 120_000 })
const first = await approval()
// Progress is told every ten seconds.
while (!news.length) await new Promise((resolve) => setTimeout(resolve, 100))
await api(`/v1/approvals/${first.approval_id}`, { decision: "deny", nonce: first.nonce })
const denied = await waiting
assert.equal(denied.isError, true)
assert.equal(said(denied).details.reason, "denied")

// A cancelled call withdraws its approval.
const controller = new AbortController()
const cancelled = client.callTool(action, undefined, { signal: controller.signal })
await approval()
controller.abort()
await assert.rejects(cancelled)
for (let pending = 1; pending; ) pending = (await api("/v1/approvals?status=pending")).items.length

// A session that its client has ended is gone; another one is not.
const ended = transport.sessionId
await transport.terminateSession()
const late = await fetch(gateway, {
  method: "POST",
  headers: { ...headers, "mcp-session-id": ended, "content-type": "application/json" },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
})
assert.equal(late.status, 404)
const again = await connect()
assert.equal((await again.client.listTools()).tools.length, names.length)
await again.client.close()
console.log("client of TypeScript: ok")

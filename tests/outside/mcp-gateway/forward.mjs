// Forwards one port to the MCP gateway of a run and adds its token: as a runner does for a harness, and for the
// conformance suite, which sends no token. Prints its address.
import http from "node:http"

const [target, token] = process.argv.slice(2)
const { hostname, port, pathname } = new URL(target)

const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` }
  const onward = http.request({ hostname, port, path: pathname, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers)
    answer.pipe(response)
  })
  onward.on("error", () => response.destroy())
  response.on("close", () => onward.destroy())
  request.pipe(onward)
})
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`))

// Sends events by the generated types and reads a run.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[] };
const [url, token] = process.argv.slice(2);
// Without the second type, an answer may be a stream of events as well.
const api = createClient<paths, "application/json">({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });
const send = async (input: components["schemas"]["AgentInput"]) => {
  const sent = await api.POST("/v1/events", {
    body: { event_type: "message.received", conversation_id: "generated-ts", input },
  });
  if (!sent.data?.run_id) throw new Error(JSON.stringify(sent.error));
  return sent.data;
};
const { run_id, status } = await send({ text: "hi" });
const run = await api.GET("/v1/runs/{id}", { params: { path: { id: run_id ?? "" } } });
if (run.data?.conversation_id !== "generated-ts") throw new Error(JSON.stringify(run.error));
await send({ contents: [{ type: "text", text: "hi" }, { type: "image", url: "https://example.com/a.png" }] });
console.log("typescript: sent and read", status);

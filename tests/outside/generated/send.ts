// Sends an event by the generated types and reads its run.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

declare const process: { argv: string[] };
const [url, token] = process.argv.slice(2);
// Without the second type, an answer may be a stream of events as well.
const api = createClient<paths, "application/json">({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });
const sent = await api.POST("/v1/events", {
  body: { event_type: "message.received", conversation_id: "generated-ts", input: { text: "hi" } },
});
if (!sent.data?.run_id) throw new Error(JSON.stringify(sent.error));
const run = await api.GET("/v1/runs/{id}", { params: { path: { id: sent.data.run_id } } });
if (run.data?.conversation_id !== "generated-ts") throw new Error(JSON.stringify(run.error));
console.log("typescript: sent and read", sent.data.status);

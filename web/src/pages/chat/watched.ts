// A stream that is told to be dead when nothing comes for long: hosts send signs of life, and something between
// may hold a connection open that leads nowhere.
import { request } from "@/api/client";

/** Three signs of life. */
const SILENCE_MS = 45_000;

export async function watchedFetch(url: string, init: RequestInit): Promise<Response> {
  const response = await request(url, init);
  if (!response.body) return response;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = new TransformStream<Uint8Array, Uint8Array>({
    start: (controller) => {
      timer = setTimeout(() => controller.error(new Error("the stream fell silent")), SILENCE_MS);
    },
    transform: (bytes, controller) => {
      clearTimeout(timer);
      timer = setTimeout(() => controller.error(new Error("the stream fell silent")), SILENCE_MS);
      controller.enqueue(bytes);
    },
    flush: () => clearTimeout(timer),
  });
  init.signal?.addEventListener("abort", () => clearTimeout(timer), { once: true });
  return new Response(response.body.pipeThrough(watch), response);
}

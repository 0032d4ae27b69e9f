// A fetch whose stream fails after a long silence: the host sends keep-alives, and a proxy
// may hold a dead connection open.
import { request } from "@/api/client";

/** Three keep-alive intervals. */
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

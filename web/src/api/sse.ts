// Server-sent events over fetch: a broken connection resumes after the last frame received.
import { ApiError, request, type Query, urlOf } from "./client";

export interface Frame {
  event: string;
  id: string | null;
  data: string;
}

/** Parses chunks of text into frames; comments are keep-alives and are skipped. */
export class FrameParser {
  #rest = "";

  push(text: string): Frame[] {
    this.#rest += text.replace(/\r\n?/g, "\n");
    const blocks = this.#rest.split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map(frameOf).filter((frame) => frame !== null);
  }
}

function frameOf(block: string): Frame | null {
  const frame: Frame = { event: "message", id: null, data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    const name = line.slice(0, colon);
    if (name === "data") data.push(value);
    else if (name === "event") frame.event = value;
    else if (name === "id") frame.id = value;
  }
  frame.data = data.join("\n");
  return data.length > 0 ? frame : null;
}

export interface FollowOptions {
  path: string;
  query?: Query;
  /** The id of the last frame already received. */
  after?: string | null;
  signal: AbortSignal;
  onFrame: (frame: Frame) => void;
  /** Whether a frame is the last one; after it the stream is not reopened. */
  isLast?: (frame: Frame) => boolean;
  /** True while the stream is open, false while it reconnects. */
  onConnection?: (open: boolean) => void;
}

const WAIT_MS = [250, 1_000, 2_000, 5_000, 10_000];

/** Reads until the last frame or the abort signal; 4xx responses are thrown. */
export async function follow(options: FollowOptions): Promise<void> {
  let after = options.after ?? null;
  let failures = 0;
  while (!options.signal.aborted) {
    try {
      const ended = await readOnce(options, after, (frame) => {
        failures = 0;
        if (frame.id !== null) after = frame.id;
      });
      if (ended) return;
    } catch (error) {
      if (options.signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
    }
    options.onConnection?.(false);
    await pause(WAIT_MS[Math.min(failures++, WAIT_MS.length - 1)] ?? 1_000, options.signal);
  }
}

async function readOnce(options: FollowOptions, after: string | null, seen: (frame: Frame) => void): Promise<boolean> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (after !== null) headers["Last-Event-ID"] = after;
  const response = await request(urlOf(options.path, options.query), { headers, signal: options.signal });
  if (!response.body) return true;
  options.onConnection?.(true);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new FrameParser();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return false;
    for (const frame of parser.push(value)) {
      seen(frame);
      options.onFrame(frame);
      if (options.isLast?.(frame)) {
        void reader.cancel();
        return true;
      }
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

// Calls to the host's API: same origin, session cookie, errors as `ApiError`.
import { hostUrl } from "./base";
import { parseVisible } from "./visible";

export type Query = Record<string, string | number | boolean | null | undefined>;

/** An error response of the host. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryable: boolean,
    readonly details: Record<string, unknown>,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** A page of a list. */
export interface Page<T> {
  items: T[];
  next_cursor: string | null;
  has_more: boolean;
}

/** Header of every write; pages of other sites cannot send it. */
export const WRITE_HEADERS = { "X-Greenroom": "1" } as const;

/** Window event: the session has ended; the shell then shows the sign-in page. */
export const SIGNED_OUT = "greenroom:signed-out";

/** Window event: the host or its database does not respond; the shell then checks which. */
export const UNREACHABLE = "greenroom:unreachable";

export function urlOf(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

/** `path("/v1/runs/{}/cancel", id)`: parts are escaped, so that no name can change the path. */
export function path(template: string, ...parts: string[]): string {
  let next = 0;
  return template.replace(/\{\}/g, () => encodeURIComponent(parts[next++] ?? ""));
}

export async function request(url: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    const headers = new Headers(init.headers);
    // Texts written by the host, such as cards, come in the language of the page.
    headers.set("Accept-Language", document.documentElement.lang || "en");
    response = await fetch(hostUrl(url), { credentials: "same-origin", ...init, headers });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    window.dispatchEvent(new CustomEvent(UNREACHABLE));
    throw new ApiError(0, "unreachable", "the host does not answer", true, {});
  }
  if (response.ok) return response;
  const error = await errorOf(response);
  if (error.status === 401) window.dispatchEvent(new CustomEvent(SIGNED_OUT));
  if (isDatabaseDown(error)) window.dispatchEvent(new CustomEvent(UNREACHABLE));
  throw error;
}

/** Whether the host responds but its database does not. */
export function isDatabaseDown(error: ApiError): boolean {
  return error.details["reason"] === "database_unavailable";
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  return parseError(response.status, text || response.statusText);
}

/** The error in a response body, or the body as the message if it is not an error of the host. */
export function parseError(status: number, text: string): ApiError {
  try {
    const { error } = JSON.parse(text) as { error?: Partial<ApiError> };
    if (error?.code) {
      return new ApiError(status, error.code, error.message ?? "", error.retryable ?? false, error.details ?? {});
    }
  } catch {
    // Not JSON: a proxy answered instead of the host.
  }
  return new ApiError(status, `http_${status}`, text.slice(0, 300), status >= 500, {});
}

async function parsed<T>(response: Response): Promise<T> {
  const text = await response.text();
  return (text ? parseVisible(text) : undefined) as T;
}

function write(method: string, body: unknown, signal?: AbortSignal): RequestInit {
  const hasBody = body !== undefined;
  return {
    method,
    headers: { ...WRITE_HEADERS, ...(hasBody ? { "Content-Type": "application/json" } : {}) },
    ...(hasBody ? { body: JSON.stringify(body) } : {}),
    ...(signal ? { signal } : {}),
  };
}

export async function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return parsed<T>(await request(urlOf(path, query), signal ? { signal } : {}));
}

export async function post<T = void>(path: string, body?: unknown, query?: Query): Promise<T> {
  return parsed<T>(await request(urlOf(path, query), write("POST", body)));
}

export async function put<T = void>(path: string, body?: unknown, query?: Query): Promise<T> {
  return parsed<T>(await request(urlOf(path, query), write("PUT", body)));
}

export async function del<T = void>(path: string, query?: Query): Promise<T> {
  return parsed<T>(await request(urlOf(path, query), write("DELETE", undefined)));
}

/** Raw bytes, such as a file that becomes an artifact. */
export async function upload<T>(path: string, bytes: Blob, query?: Query, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { ...WRITE_HEADERS };
  if (bytes.type) headers["Content-Type"] = bytes.type;
  const init: RequestInit = { method: "POST", headers, body: bytes, ...(signal ? { signal } : {}) };
  return parsed<T>(await request(urlOf(path, query), init));
}

export async function getBlob(path: string, signal?: AbortSignal): Promise<Blob> {
  return (await request(path, signal ? { signal } : {})).blob();
}

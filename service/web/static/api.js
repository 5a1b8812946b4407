// The server's API. Owns addresses, the API key of this tab, and what an answer that is none means:
// every failure is an ApiError of one of a few kinds. Addresses are relative, so that the page works
// below any path of a proxy.

const BASE = new URL("../", import.meta.url);
const KEY_NAME = "dragoman.key";
const IN_A_HEADER = /^[\t -~\x80-\xff]*$/; // of other characters `fetch` throws what it throws without a connection
const KINDS = {
  400: "invalid", 401: "key_wanted", 403: "key_wrong", 404: "missing", 408: "slow", 409: "conflict",
  413: "too_long", 415: "file_kind", 422: "invalid", 429: "busy", 502: "unavailable", 503: "unavailable", 504: "slow",
};

/** A failure. `kind` is a word of KINDS, "offline" or "failed"; the rest is what the server said. */
export class ApiError extends Error {
  constructor(kind, { message = kind, code = "", value = null, limit = null, retrySeconds = null } = {}) {
    super(message);
    Object.assign(this, { name: "ApiError", kind, code, value, limit, retrySeconds });
  }
}

let key = "";
try {
  key = sessionStorage.getItem(KEY_NAME) ?? "";
} catch {
  // Then it lasts as long as the page.
}

/** The API key of this tab; empty without one. */
export const apiKey = () => key;

/** Use another API key until the tab is closed. */
export function useKey(value) {
  key = value.trim();
  try {
    sessionStorage.setItem(KEY_NAME, key);
  } catch {
    // It is used all the same.
  }
}

/** The answer to a request, whatever it holds; an ApiError unless its status is of success. */
export async function ask(path, { method = "GET", body = null, signal = null, type = null } = {}) {
  if (!IN_A_HEADER.test(key)) throw new ApiError("key_wrong");
  const headers = {};
  if (key) headers.authorization = `Bearer ${key}`;
  if (type) headers["content-type"] = type;
  let reply;
  try {
    reply = await fetch(new URL(path, BASE), { method, body, signal, headers, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("offline");
  }
  if (!reply.ok) throw await refusal(reply);
  return reply;
}

/** The JSON of an answer. */
export async function askJson(path, options) {
  const reply = await ask(path, options);
  try {
    return await reply.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("offline");
  }
}

/** The bytes of an answer. */
export async function askBlob(path, options) {
  const reply = await ask(path, options);
  try {
    return await reply.blob();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("offline");
  }
}

/** The loaded languages: `{code, name, targets}` each. */
export const languages = () => askJson("languages");

/** The description of the API, OpenAPI. */
export const description = () => askJson("openapi.json");

/** The translation of one text, by `POST /v1/translate`. */
export const translate = (values, signal) =>
  askJson("v1/translate", { method: "POST", body: JSON.stringify(values), type: "application/json", signal });

async function refusal(reply) {
  let content = {};
  try {
    content = (await reply.json()) ?? {};
  } catch {
    // A proxy's page; its status says enough.
  }
  const seconds = Number.parseInt(reply.headers.get("retry-after") ?? "", 10);
  return new ApiError(KINDS[reply.status] ?? "failed", {
    message: typeof content.error === "string" ? content.error : `${reply.status}`,
    code: content.code,
    value: content.value,
    limit: content.limit,
    retrySeconds: Number.isFinite(seconds) ? seconds : null,
  });
}

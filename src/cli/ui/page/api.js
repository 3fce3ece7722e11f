// Speaks the API of `dormouse ui`. All addresses are relative to the page.

const GET_TIMEOUT = 10_000;

// A browser opens at most six connections to a server. Slow actions leave some of them to polls.
const MAX_SLOW_ACTIONS = 3;

/**
 * A request that failed. `kind` is "unreachable" (no connection), "silent" (no answer in time),
 * "ended" (the page's session) or "refused".
 */
export class RequestError extends Error {
  constructor(message, kind, status = 0) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

export const getOverview = () => get("overview");
export const getCalls = (after, signal) => get(`calls?after=${after}`, signal);
export const getSavings = (signal) => get("savings", signal);
export const getTools = (server, signal) => get(`${path(server)}/tools`, signal);
export const getChanges = (server, signal) => get(`${path(server)}/changes`, signal);
export const getStderr = (server, signal) => get(`${path(server)}/stderr`, signal);
export const search = (query) => get(`search?query=${encodeURIComponent(query)}`);

export const load = (server) => postSlowly(`${path(server)}/load`);
export const logIn = (server) => postSlowly(`${path(server)}/login`);
export const sleep = (server) => post(`${path(server)}/sleep`);
export const reset = (server) => post(`${path(server)}/reset`);
export const enable = (server, enabled) => post(`${path(server)}/enabled`, { enabled });
export const isolate = (server, isolation) => post(`${path(server)}/isolation`, { isolation });
export const approve = (server, tool, definition) =>
  post(`${path(server)}/approve`, { tool, definition });
export const enableTool = (server, tool, enabled) =>
  post(`${path(server)}/tool-enabled`, { tool, enabled });

const path = (server) => `servers/${segment(server)}`;

/**
 * Encodes a name. A URL drops the segments `.` and `..`, so that a request would reach another
 * address.
 */
function segment(name) {
  if (/^\.{0,2}$/.test(name))
    throw new RequestError(`the name “${name}” cannot be sent in an address`, "refused");
  return encodeURIComponent(name);
}

function get(address, signal) {
  const signals = [AbortSignal.timeout(GET_TIMEOUT), ...(signal ? [signal] : [])];
  return request(address, { signal: AbortSignal.any(signals) });
}

function post(address, body) {
  return request(address, {
    method: "POST",
    headers: { "Dormouse-Page": "1", ...(body && { "Content-Type": "application/json" }) },
    body: body && JSON.stringify(body),
  });
}

let running = 0;
const waiting = [];

/** Sends an action that can take long, once fewer than `MAX_SLOW_ACTIONS` of them run. */
async function postSlowly(address) {
  if (running >= MAX_SLOW_ACTIONS) await new Promise((proceed) => waiting.push(proceed));
  else running += 1;
  try {
    return await post(address);
  } finally {
    if (waiting.length) waiting.shift()();
    else running -= 1;
  }
}

async function request(address, options) {
  let response, body;
  try {
    response = await fetch(`api/${address}`, { cache: "no-store", ...options });
    body = await response.text();
  } catch (cause) {
    if (cause.name === "TimeoutError") throw new RequestError("dormouse does not answer", "silent");
    throw new RequestError("dormouse cannot be reached", "unreachable");
  }
  const { status } = response;
  const answer = parse(body);
  if (status === 401)
    throw new RequestError(answer?.error ?? "the session of this page has ended", "ended", status);
  if (!response.ok)
    throw new RequestError(answer?.error ?? `the answer is ${status}`, "refused", status);
  if (answer === undefined) throw new RequestError("the answer is not JSON", "refused", status);
  return answer;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Speaks the API of `dormouse ui`. All addresses are relative to the page.

const GET_TIMEOUT = 10_000;

// A browser opens at most six connections to a server. Slow actions leave some of them to polls.
const MAX_ACTIONS = 3;

/** A request that failed. `kind` is "unreachable", "ended" (of the page's session) or "refused". */
export class RequestError extends Error {
  constructor(message, kind, status = 0) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

export const getOverview = () => get("overview");
export const getCalls = (after) => get(`calls?after=${after}`);
export const getSavings = () => get("savings");
export const getTools = (server) => get(`${path(server)}/tools`);
export const getChanges = (server) => get(`${path(server)}/changes`);
export const getStderr = (server) => get(`${path(server)}/stderr`);
export const search = (query) => get(`search?query=${encodeURIComponent(query)}`);

export const load = (server) => post(`${path(server)}/load`);
export const sleep = (server) => post(`${path(server)}/sleep`);
export const reset = (server) => post(`${path(server)}/reset`);
export const logIn = (server) => post(`${path(server)}/login`);
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

const get = (address) => request(address, { signal: AbortSignal.timeout(GET_TIMEOUT) });

let running = 0;
const waiting = [];

async function post(address, body) {
  if (running >= MAX_ACTIONS) await new Promise((proceed) => waiting.push(proceed));
  else running += 1;
  try {
    return await request(address, {
      method: "POST",
      headers: { "Dormouse-Page": "1", ...(body && { "Content-Type": "application/json" }) },
      body: body && JSON.stringify(body),
    });
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
    const reason = cause.name === "TimeoutError" ? "does not answer" : "has ended";
    throw new RequestError(`dormouse ui ${reason}`, "unreachable");
  }
  if (response.status === 401)
    throw new RequestError("The session of this page has ended", "ended", 401);
  const answer = parse(body);
  if (!response.ok)
    throw new RequestError(
      answer?.error ?? `the answer is ${response.status}`,
      "refused",
      response.status,
    );
  if (answer === undefined)
    throw new RequestError("the answer is not JSON", "refused", response.status);
  return answer;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

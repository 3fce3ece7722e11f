// A mock of `dormouse ui`, for tests and for the development of the page.
// Usage: node server.mjs [SCENARIO] [PORT]

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { scenarios } from "./scenarios.mjs";

const SITE = new URL("../../../src/cli/ui/page/", import.meta.url);
const TOKEN = "3xKtestTOKEN";
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = {
  html: "text/html; charset=utf-8",
  css: "text/css",
  js: "text/javascript",
  svg: "image/svg+xml",
};

class HttpError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * Starts the mock; `world` can be changed while it runs. `failures` has an error for each kind of
 * request that fails, and `holds` a promise for each kind that waits. Kinds are "overview",
 * "calls", "savings", "search", and the last parts of addresses of servers, such as "stderr" and
 * "load".
 */
export async function startMock(scenario, port = 0) {
  const world = scenarios[scenario]();
  const mock = { world, hasEnded: false, requests: [], failures: {}, holds: {} };
  const listener = createServer((request, response) =>
    answer(mock, request, response).catch((error) => {
      send(response, error.status ?? 500, { error: error.message });
    }),
  );
  await new Promise((resolve) => listener.listen(port, "127.0.0.1", resolve));
  mock.port = listener.address().port;
  mock.url = `http://127.0.0.1:${mock.port}/${TOKEN}/`;
  mock.close = () =>
    new Promise((resolve) => {
      listener.close(resolve);
      listener.closeAllConnections();
    });
  return mock;
}

async function answer(mock, request, response) {
  const url = new URL(request.url, "http://localhost");
  if (!url.pathname.startsWith(`/${TOKEN}/`)) throw new HttpError(404, "no such page");
  const path = url.pathname.slice(TOKEN.length + 2);
  if (!path.startsWith("api/")) return sendFile(path || "index.html", response);
  mock.requests.push(`${request.method} ${path}${url.search}`);
  if (mock.hasEnded) {
    const way = mock.world.hasSignIn ? "sign in again" : "run `dormouse ui` again";
    throw new HttpError(401, `the session of this page has ended: ${way}`);
  }
  const parts = path.split("/").slice(1).map(decodeURIComponent);
  const kind = parts[2] ?? parts[0];
  // The answer is that of the moment of the request.
  const held = mock.holds[kind];
  if (mock.failures[kind]) throw new HttpError(500, mock.failures[kind]);
  if (request.method === "GET") {
    const body = structuredClone(read(mock.world, parts, url.searchParams));
    await held;
    return send(response, 200, body);
  }
  if (request.headers["dormouse-page"] !== "1")
    throw new HttpError(403, "the header Dormouse-Page is missing");
  const body = await readBody(request);
  send(response, 200, await act(mock.world, parts, body, held));
}

async function sendFile(name, response) {
  try {
    const content = await readFile(fileURLToPath(new URL(name, SITE)));
    response.writeHead(200, {
      "content-type": TYPES[name.split(".").at(-1)],
      "content-security-policy": CSP,
      "cache-control": "no-store",
    });
    response.end(content);
  } catch {
    throw new HttpError(404, "no such file");
  }
}

function send(response, status, body) {
  response.writeHead(status, {
    "content-type": "application/json",
    "content-security-policy": CSP,
  });
  response.end(JSON.stringify(body));
}

async function readBody(request) {
  let text = "";
  for await (const chunk of request) text += chunk;
  if (text && request.headers["content-type"] !== "application/json")
    throw new HttpError(415, "the body must be JSON");
  return text ? JSON.parse(text) : {};
}

function read(world, [first, name, what], query) {
  if (first === "overview") return overview(world);
  if (first === "calls") return callsAfter(world, Number(query.get("after")));
  if (first === "savings") return world.savings;
  if (first === "search") return search(world, query.get("query"));
  const server = find(world, name);
  if (what === "tools") return server.tools ?? [];
  if (what === "changes") return server.changes;
  if (what === "stderr") return server.stderr;
  throw new HttpError(404, "no such address");
}

function overview({ version, config, callLog, hasSignIn, processes, servers }) {
  return {
    version,
    config,
    callLog,
    hasSignIn,
    processes,
    servers: servers.map(({ tools, changes, stderr, loadFails, ...rest }) => ({
      ...rest,
      toolCounts: tools && countTools(tools),
    })),
  };
}

function countTools(tools) {
  const counts = { shown: 0, hidden: 0, blocked: 0, stale: 0, changed: 0 };
  for (const tool of tools) {
    counts[tool.state] += 1;
    if (tool.changed) counts.changed += 1;
  }
  return counts;
}

/** The program keeps the last 500 calls. */
function callsAfter({ calls }, after) {
  return { next: calls.length, calls: calls.slice(Math.max(after, calls.length - 500)) };
}

function search(world, query) {
  const hits = world.search(query);
  if (!hits) throw new HttpError(409, "no dormouse is running that could search");
  return { hits };
}

function find(world, name) {
  const server = world.servers.find((entry) => entry.name === name);
  if (!server) throw new HttpError(404, `unknown server ${name}`);
  return server;
}

async function act(world, [, name, verb], body, held) {
  const server = find(world, name);
  if (verb === "load") server.state = "loading";
  await held;
  if (verb === "tool-enabled") return enableTool(server, body.tool, body.enabled);
  await ACTIONS[verb](server, body);
  return verb === "login" ? { address: server.loginProgress.address } : {};
}

function enableTool(server, name, enabled) {
  const tool = server.tools.find((entry) => entry.name === name);
  if (!tool) throw new HttpError(404, `unknown tool ${name}`);
  if (tool.state === "stale") return {};
  const isBlocked = tool.changed && server.changes.some((change) => change.tool === name);
  tool.state = enabled ? (isBlocked ? "blocked" : "shown") : "hidden";
  return {};
}

const ACTIONS = {
  load(server) {
    if (!server.loadFails)
      return void Object.assign(server, {
        state: "awake",
        strikes: 0,
        awake: 1,
        memory: 5e7,
        lastError: null,
      });
    server.strikes += 1;
    Object.assign(server, {
      state: server.strikes >= 3 ? "evicted" : "unloaded",
      lastError: server.loadFails,
    });
    throw new HttpError(409, server.loadFails);
  },
  sleep: (server) => Object.assign(server, { state: "asleep", awake: 0, memory: null }),
  reset: (server) =>
    Object.assign(server, { state: "unloaded", strikes: 0, lastError: null, retryIn: null }),
  enabled: (server, { enabled }) =>
    Object.assign(server, { enabled, state: enabled ? "unloaded" : "disabled" }),
  isolation: (server, { isolation }) => Object.assign(server, { isolation }),
  login: (server) =>
    Object.assign(server, {
      loginProgress: { state: "waiting", address: "https://login.example/authorize?x=1" },
    }),
  approve(server, { tool, definition }) {
    const change = server.changes.find((entry) => entry.tool === tool);
    if (change?.definition !== definition)
      throw new HttpError(409, "the definition has changed again: look at it once more");
    server.changes = server.changes.filter((entry) => entry !== change);
    const entry = server.tools.find((each) => each.name === tool);
    Object.assign(entry, { state: "shown", changed: undefined });
  },
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const mock = await startMock(process.argv[2] ?? "states", Number(process.argv[3] ?? 8100));
  console.log(mock.url);
}

// A small MCP client for the conformance suites: `node client.mjs <url>` does what the scenario
// named in MCP_CONFORMANCE_SCENARIO expects of a well-behaved client. Both eras have the same two
// methods, `request` and `close`, so that a scenario is written once. CLIENT_ERA (legacy or modern)
// has it speak another era than the suite asks for.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { authorizedFetch } from "./authorized.mjs";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ResultSchema,
} from "@modelcontextprotocol/sdk/types.js";

const MODERN = "2026-07-28";
const INFO = { name: "conformance-client", version: "1.0.0" };
const CAPABILITIES = { roots: {}, sampling: {}, elicitation: { form: { applyDefaults: true } } };

// ---------------------------------------------------------------- the two eras

/** An `initialize` handshake and a session: the TypeScript SDK. */
async function connectLegacy(url, answer, fetch) {
  const client = new Client(INFO, { capabilities: CAPABILITIES });
  for (const schema of [ElicitRequestSchema, ListRootsRequestSchema, CreateMessageRequestSchema]) {
    client.setRequestHandler(schema, ({ method, params }) => answer(method, params));
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch }));
  return {
    request: (method, params) => client.request({ method, params }, ResultSchema),
    close: () => client.close(),
  };
}

/** 2026-07-28: every request stands alone. */
async function connectModern(url, answer, fetch = globalThis.fetch) {
  let version = MODERN;
  let lastId = 0;
  const tools = new Map();

  async function post(method, params) {
    const id = ++lastId;
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": version,
      "io.modelcontextprotocol/clientInfo": INFO,
      "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    };
    const headers = {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": version,
      "Mcp-Method": method,
    };
    const subject = method === "resources/read" ? params.uri : params.name;
    if (subject !== undefined) headers["Mcp-Name"] = headerValue(subject);
    if (method === "tools/call")
      Object.assign(headers, mirrored(tools.get(params.name), params.arguments));
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta } });
    const response = await fetch(url, { method: "POST", headers, body });
    const reply = messages(response.headers.get("content-type") ?? "", await response.text()).find(
      (message) => message.id === id && !message.method,
    );
    if (!reply) throw new Error(`${method}: HTTP ${response.status} without an answer`);
    return reply;
  }

  /** One request, repeated with another version or with answers to the server's questions. */
  async function request(method, params = {}) {
    let round = params;
    for (let rounds = 0; rounds < 10; rounds++) {
      const { error, result } = await post(method, round);
      if (error?.code === -32022 && error.data?.supported?.includes(MODERN) && rounds === 0) {
        version = MODERN;
      } else if (error) {
        throw new Error(`${method}: ${JSON.stringify(error)}`);
      } else if (result.resultType === "input_required") {
        const inputResponses = {};
        for (const [key, asked] of Object.entries(result.inputRequests ?? {})) {
          inputResponses[key] = await answer(asked.method, asked.params);
        }
        round = { ...params, inputResponses };
        if (result.requestState !== undefined) round.requestState = result.requestState;
      } else {
        if (method === "tools/list") {
          result.tools = result.tools.filter(marks);
          for (const tool of result.tools) tools.set(tool.name, tool);
        }
        return result;
      }
    }
    throw new Error(`${method}: no end of rounds`);
  }

  await request("server/discover");
  return { request, close: async () => {} };
}

/** The JSON-RPC messages in a body that is JSON or a stream of events. */
function messages(type, text) {
  if (!type.startsWith("text/event-stream")) return text ? [JSON.parse(text)].flat() : [];
  const data = (event) =>
    event
      .split(/\r?\n/)
      .filter((line) => line.startsWith("data:"))
      .map((line) => line.slice(5).trim());
  return text
    .split(/\r?\n\r?\n/)
    .map((event) => data(event).join("\n"))
    .filter(Boolean)
    .map((json) => JSON.parse(json));
}

// ---------------------------------------------------------------- x-mcp-header

/** The marked parameters of a tool as [path, header name]; undefined if a mark is invalid. */
function marks(tool) {
  const found = [];
  let valid = true;
  (function visit(node, path) {
    if (typeof node !== "object" || node === null) return;
    for (const [key, value] of Object.entries(node)) {
      if (key === "x-mcp-header" && typeof value !== "object") {
        const inPlace =
          path.length > 0 && path.every((step, at) => at % 2 === 1 || step === "properties");
        valid &&=
          inPlace &&
          ["string", "integer", "boolean"].includes(node.type) &&
          /^[\w!#$%&"*+.^`|~-]+$/.test(value);
        found.push([path.filter((_, at) => at % 2 === 1), value]);
      } else visit(value, [...path, key]);
    }
  })(tool.inputSchema, []);
  const names = found.map(([, name]) => String(name).toLowerCase());
  return valid && new Set(names).size === names.length ? found : undefined;
}

function mirrored(tool, args) {
  const headers = {};
  for (const [path, name] of (tool && marks(tool)) ?? []) {
    const value = path.reduce((at, key) => at?.[key], args);
    if (value !== undefined && value !== null)
      headers[`Mcp-Param-${name}`] = headerValue(String(value));
  }
  return headers;
}

function headerValue(text) {
  const isSafe =
    /^[\x20-\x7e]*$/.test(text) && text.trim() === text && !/^=\?base64\?.*\?=$/.test(text);
  return isSafe ? text : `=?base64?${Buffer.from(text).toString("base64")}?=`;
}

// ---------------------------------------------------------------- the scenarios

/** Answers a server's question; a form is accepted with the defaults of its schema alone. */
function answerQuestion(method, params) {
  if (method === "roots/list") return { roots: [] };
  if (method === "sampling/createMessage") {
    return { role: "assistant", model: "none", content: { type: "text", text: "text" } };
  }
  const fields = Object.entries(params.requestedSchema?.properties ?? {}).filter(
    ([, field]) => "default" in field,
  );
  return {
    action: "accept",
    content: Object.fromEntries(fields.map(([name, field]) => [name, field.default])),
  };
}

async function listOnly(server) {
  await server.request("tools/list");
}

/** Calls each tool with the fewest arguments that its schema accepts. */
async function callEveryTool(server) {
  const example = {
    string: "text",
    number: 1.5,
    integer: 5,
    boolean: true,
    object: {},
    array: [],
    null: null,
  };
  for (const tool of (await server.request("tools/list")).tools) {
    const { properties = {}, required = [] } = tool.inputSchema;
    const args = Object.fromEntries(
      required.map((name) => [name, example[properties[name]?.type]]),
    );
    await server.request("tools/call", { name: tool.name, arguments: args });
  }
}

/** Uses one of everything that a server lists. */
async function useEverything(server) {
  await callEveryTool(server);
  for (const { uri } of (await server.request("resources/list")).resources)
    await server.request("resources/read", { uri });
  for (const { name } of (await server.request("prompts/list")).prompts)
    await server.request("prompts/get", { name });
}

async function callAsTold(server) {
  await server.request("tools/list");
  for (const call of JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT).toolCalls)
    await server.request("tools/call", call);
}

async function echoSchema(server) {
  const { tools } = await server.request("tools/list");
  const schema = tools.find((tool) => tool.name === "json_schema_2020_12_tool").inputSchema;
  await server.request("tools/call", { name: "json_schema_echo", arguments: { schema } });
}

/** An unrelated call is made while the server waits for each answer. */
async function severalRounds(server, asides) {
  await server.request("tools/list");
  const call = (name) => server.request("tools/call", { name, arguments: {} });
  asides.push(() => call("test_mrtr_unrelated"));
  await call("test_mrtr_echo_state");
  await call("test_mrtr_no_state");
  await call("test_mrtr_no_result_type");
}

/** What it needs a login for. */
async function useGuarded(server) {
  await server.request("tools/list");
  await server.request("tools/call", { name: "test-tool", arguments: {} });
}

const SCENARIOS = {
  initialize: listOnly,
  "request-metadata": listOnly,
  "json-schema-ref-no-deref": listOnly,
  tools_call: callEveryTool,
  "elicitation-sep1034-client-defaults": callEveryTool,
  "sse-retry": callEveryTool,
  "http-invalid-tool-headers": callEveryTool,
  "http-standard-headers": useEverything,
  "http-custom-headers": callAsTold,
  "json-schema-2020-12-preservation": echoSchema,
  "sep-2322-client-request-state": severalRounds,
};

const name = process.env.MCP_CONFORMANCE_SCENARIO;
const isGuarded = name.startsWith("auth/");
const scenario = isGuarded ? useGuarded : SCENARIOS[name];
if (!scenario) throw new Error(`unknown scenario ${name}`);
const isModern =
  (process.env.CLIENT_ERA ??
    (process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === MODERN ? "modern" : "legacy")) === "modern";
const asides = [];
const url = process.argv.at(-1);
// Before dormouse nobody has to log in.
const fetch = isGuarded && !process.env.DORMOUSE_IS_BETWEEN ? authorizedFetch(url) : undefined;
const answer = async (method, params) => {
  for (const aside of asides) await aside();
  return answerQuestion(method, params);
};
const server = await (isModern ? connectModern : connectLegacy)(url, answer, fetch);
await scenario(server, asides);
await server.close();
process.exit(0);

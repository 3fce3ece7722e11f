// The TypeScript SDK as a host: client.mjs WAY TARGET…
//
// WAY is `stdio` (TARGET: a command and its arguments), `http` or `sse` (TARGET: a URL). Ends with
// 0 when everything that a host does has worked.

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const [way, ...target] = process.argv.slice(2);
const transports = {
  stdio: () => new StdioClientTransport({ command: target[0], args: target.slice(1) }),
  http: () => new StreamableHTTPClientTransport(new URL(target[0])),
  sse: () => new SSEClientTransport(new URL(target[0])),
};

const info = { name: "typescript", version: "1" };
const client = new Client(info, { capabilities: { sampling: {}, elicitation: {} } });
client.setRequestHandler(CreateMessageRequestSchema, () => {
  return {
    role: "assistant",
    model: "none",
    content: { type: "text", text: "sampled in TypeScript" },
  };
});
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  const fields = Object.keys(params.requestedSchema.properties);
  return {
    action: "accept",
    content: Object.fromEntries(fields.map((name) => [name, "elicited in TypeScript"])),
  };
});
const told = new Promise((resolve) =>
  client.setNotificationHandler(ToolListChangedNotificationSchema, resolve),
);
await client.connect(transports[way]());

const names = (await client.listTools()).tools.map((tool) => tool.name);
assert.deepEqual(names, ["discover_tool", "use_tool", "load_mcp"]);
const loaded = await client.callTool({ name: "load_mcp", arguments: { mcp_name: "u" } });
assert.equal(loaded.structuredContent.mcp_name, "u");
await told;

const progress = [];
async function use(tool, input = {}) {
  const call = { name: "use_tool", arguments: { tool_name: `u/${tool}`, tool_input: input } };
  const result = await client.callTool(call, undefined, {
    onprogress: (params) => progress.push(params.progress),
  });
  return result.content[0];
}
assert.equal((await use("test_image_content")).type, "image");
assert.match((await use("test_sampling", { prompt: "p" })).text, /sampled in TypeScript/);
assert.match((await use("test_elicitation", { message: "m" })).text, /elicited in TypeScript/);
await use("test_tool_with_progress");
assert.deepEqual(progress.slice(-3), [0, 50, 100]);
const read = await client.readResource({ uri: "test://static-text" });
assert.match(read.contents[0].text, /static text/);
const prompt = await client.getPrompt({ name: "test_simple_prompt" });
assert.equal(prompt.messages.length, 1);
await client.close();

// The page in front of a mock of its API, whose state a test sets.

import { openPage } from "./browser.mjs";
import { startMock } from "./mock/server.mjs";
import { call } from "./mock/scenarios.mjs";

/**
 * Scenarios: "states" (a server in each state), "many" (100 servers with 50 tools each), "huge"
 * (5,000 tools in one server), "none" (no process runs), "variants" (a tool with two new
 * definitions), "hostile" (texts that attack), "empty" (no server), "callLogOff".
 */
async function startBackend(scenario) {
  let mock = await startMock(scenario);
  const find = (name) => mock.world.servers.find((entry) => entry.name === name);
  return {
    url: mock.url,
    close: () => mock.close(),
    /** Sets fields of a server's overview, such as `{state: "asleep"}`. */
    changeServer: (name, fields) => Object.assign(find(name), fields),
    removeServer: (name) =>
      (mock.world.servers = mock.world.servers.filter((entry) => entry.name !== name)),
    writeStderr: (name, line) => find(name).stderr.push(line),
    /** Changes a changed tool's definition again, as a server does between two polls. */
    changeDefinition(name, tool) {
      const change = find(name).changes.find((entry) => entry.tool === tool);
      change.definition += "-again";
      const lines = [{ change: "added", text: "the newest definition" }];
      change.variants = [{ isEarlierKnown: true, lines }];
    },
    addCalls(...calls) {
      for (const fields of calls)
        mock.world.calls.push(call(0, { at: new Date().toISOString(), ...fields }));
    },
    /** Sets fields of the overview, such as `{processes: []}`. */
    changeWorld: (fields) => Object.assign(mock.world, fields),
    /** Sets fields of a tool, such as `{state: "hidden"}`. */
    changeTool: (name, tool, fields) =>
      Object.assign(
        find(name).tools.find((entry) => entry.name === tool),
        fields,
      ),
    /**
     * Lets requests such as "stderr" or "load" wait until the returned function is called. Their
     * answers are those of the moment of the request.
     */
    hold(kind) {
      let resolve;
      mock.holds[kind] = new Promise((given) => (resolve = given));
      return () => {
        delete mock.holds[kind];
        resolve();
      };
    },
    /** Ends a hold for new requests: those that wait go on waiting. */
    letPass: (kind) => delete mock.holds[kind],
    /** Answers requests such as "calls" or "savings" with an error; `null` ends that. */
    failRequests: (kind, error) => (mock.failures[kind] = error),
    endSession: () => (mock.hasEnded = true),
    resumeSession: () => (mock.hasEnded = false),
    /** Ends the program that serves the page, and starts it again at the same address. */
    goDown: () => mock.close(),
    async comeBack() {
      const { world, port } = mock;
      mock = await startMock(scenario, port);
      mock.world = world;
    },
    /** Returns the requests whose text contains `part`, such as "POST". */
    requests: (part) => mock.requests.filter((request) => request.includes(part)),
  };
}

/**
 * Opens the page in front of a fresh mock, runs `check({page, backend, context})` and closes both.
 */
export async function withPage(browser, scenario, options, check) {
  const backend = await startBackend(scenario);
  try {
    await openPage(browser, backend.url, options, (page, context) =>
      check({ page, backend, context }),
    );
  } finally {
    await backend.close();
  }
}

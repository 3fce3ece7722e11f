// The page in front of a mock of its API, whose state a test sets.

import { openPage } from "./browser.mjs";
import { startMock } from "./mock/server.mjs";
import { call } from "./mock/scenarios.mjs";

/**
 * Scenarios: "states" (a server in each state), "many" (100 servers with 50 tools each), "huge"
 * (5,000 tools in one server), "none" (no process runs), "hostile" (texts that attack), "empty" (no
 * server), "callLogOff".
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
      change.lines = [{ change: "added", text: "the newest definition" }];
    },
    addCalls(...calls) {
      for (const fields of calls)
        mock.world.calls.push(call(0, { at: new Date().toISOString(), ...fields }));
    },
    stopProcesses: () => (mock.world.processes = []),
    /** Answers requests such as "calls" or "savings" with an error. */
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

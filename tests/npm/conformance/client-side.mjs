// Runs the client scenarios of the conformance suites (all but those of authorization), with a client that
// is connected directly, through dormouse, and through dormouse in the other era than the server's.
// What passes directly has to pass through dormouse, unless docs/conformance.md says why it does not.
//
// node client-side.mjs DORMOUSE

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "./programs.mjs";

const here = import.meta.dirname;
const packages = join(here, "..", "node_modules");
const [dormouse] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "dormouse-conformance-"));

const MODERN = "2026-07-28";
const either = ["2025-11-25", MODERN];
const suites = {
  "@modelcontextprotocol/conformance": {
    initialize: [undefined],
    tools_call: [undefined],
    "elicitation-sep1034-client-defaults": [undefined],
    "sse-retry": [undefined],
  },
  "conformance-next": {
    initialize: ["2025-06-18", "2025-11-25"],
    tools_call: ["2025-06-18", ...either],
    "elicitation-sep1034-client-defaults": ["2025-11-25"],
    "sse-retry": ["2025-11-25"],
    "json-schema-2020-12-preservation": either,
    "request-metadata": [MODERN],
    "sep-2322-client-request-state": [MODERN],
    "http-standard-headers": [MODERN],
    "http-custom-headers": [MODERN],
    "http-invalid-tool-headers": [MODERN],
    "json-schema-ref-no-deref": [MODERN],
  },
};

/** The ways from the client to the suite's server: the command, and what it needs in its environment. */
const columns = {
  direct: () => ["client.mjs", {}],
  proxied: () => ["between.mjs", {}],
  "other era": (version) => {
    const [client, server] = version === MODERN ? ["legacy", "modern"] : ["modern", "legacy"];
    return ["between.mjs", { CLIENT_ERA: client, SERVER: JSON.stringify({ protocol: server }) }];
  },
};

/** Runs a scenario; resolves with whether each check passed. */
async function check(suite, scenario, version, [program, more]) {
  const output = mkdtempSync(join(scratch, "out-"));
  const command = `${process.execPath} ${join(here, program)}`;
  const args = [join(packages, suite, "dist", "index.js"), "client", "--command", command];
  args.push("--scenario", scenario, "-o", output);
  if (version) args.push("--spec-version", version);
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  await run(process.execPath, args, { env: { ...process.env, PATH: path, DORMOUSE: dormouse, ...more } });
  const checks = new Map();
  for (const directory of readdirSync(output)) {
    for (const { id, status } of JSON.parse(readFileSync(join(output, directory, "checks.json")))) {
      if (status === "SKIPPED") continue;
      checks.set(id, (checks.get(id) ?? true) && (status === "SUCCESS" || status === "INFO"));
    }
  }
  return checks;
}

const explained = readFileSync(join(here, "..", "..", "..", "docs", "conformance.md"), "utf8");
let unexplained = 0;
try {
  console.log("\nclient scenarios: checks passed directly / through dormouse / through it in the other era");
  for (const [suite, scenarios] of Object.entries(suites)) {
    for (const [scenario, versions] of Object.entries(scenarios)) {
      for (const version of versions) {
        const results = {};
        for (const [column, way] of Object.entries(columns)) {
          results[column] = await check(suite, scenario, version, way(version));
        }
        const passed = Object.values(results).map((checks) => [...checks.values()].filter(Boolean).length);
        console.log(`  ${scenario} ${version ?? ""}: ${passed.join(" / ")}`);
        if (passed[0] === 0) unexplained += 1;
        for (const [id, isPassed] of results.direct) {
          const failed = Object.keys(columns).filter((column) => isPassed && !results[column].get(id));
          if (failed.length === 0) continue;
          const isExplained = explained.includes(`\`${scenario}/${id}\``);
          unexplained += isExplained ? 0 : 1;
          console.log(`    ${isExplained ? "explained" : "DIFFERS"}: ${scenario}/${id} (${failed.join(", ")})`);
        }
      }
    }
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(unexplained === 0 ? 0 : 1);

// Runs the client scenarios of the conformance suites, with a client that is connected directly,
// through dormouse, and through dormouse in the other era than the server's. What passes directly
// has to pass through dormouse, unless docs/reference/conformance.md says why it does not.
//
// node client-side.mjs DORMOUSE [SCENARIO…]

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "./programs.mjs";

const here = import.meta.dirname;
const packages = join(here, "..", "node_modules");
const [dormouse, ...chosen] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "dormouse-conformance-"));

const MODERN = "2026-07-28";
const either = ["2025-11-25", MODERN];
/** Scenarios of authorization, each in these versions. */
function guarded(versions, names) {
  return Object.fromEntries(names.map((name) => [`auth/${name}`, versions]));
}
const GUARDED = [
  "metadata-default",
  "metadata-var1",
  "metadata-var2",
  "metadata-var3",
  "basic-cimd",
  "scope-from-www-authenticate",
  "scope-from-scopes-supported",
  "scope-omitted-when-undefined",
  "scope-step-up",
  "scope-retry-limit",
  "token-endpoint-auth-basic",
  "token-endpoint-auth-post",
  "token-endpoint-auth-none",
  "pre-registration",
];
const OLD_GUARDED = ["2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"];
const NEW_GUARDED = ["resource-mismatch", "offline-access-scope", "offline-access-not-supported"];
const NEWEST_GUARDED = [
  "authorization-server-migration",
  "iss-supported",
  "iss-not-advertised",
  "iss-supported-missing",
  "iss-wrong-issuer",
  "iss-unexpected",
  "iss-normalized",
  "metadata-issuer-mismatch",
];
const MACHINES = ["client-credentials-jwt", "client-credentials-basic"];

const suites = {
  "@modelcontextprotocol/conformance": {
    initialize: [undefined],
    tools_call: [undefined],
    "elicitation-sep1034-client-defaults": [undefined],
    "sse-retry": [undefined],
    ...guarded([undefined], [...GUARDED, ...OLD_GUARDED, ...NEW_GUARDED, ...MACHINES]),
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
    ...guarded(either, GUARDED),
    ...guarded([MODERN], [...NEW_GUARDED, ...NEWEST_GUARDED]),
    ...guarded(["2025-03-26"], OLD_GUARDED),
    ...guarded([undefined], MACHINES),
  },
};

/** The ways from the client to the suite's server: the command and its environment. */
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
  await run(process.execPath, args, {
    env: { ...process.env, PATH: path, DORMOUSE: dormouse, ...more },
  });
  const checks = new Map();
  const files = readdirSync(output, { recursive: true }).filter((path) =>
    path.endsWith("checks.json"),
  );
  for (const file of files) {
    for (const { id, status } of JSON.parse(readFileSync(join(output, file)))) {
      // What is only noted is no requirement.
      if (status === "SKIPPED" || status === "INFO") continue;
      checks.set(id, (checks.get(id) ?? true) && status === "SUCCESS");
    }
  }
  return checks;
}

const explained = readFileSync(
  join(here, "..", "..", "..", "docs", "reference", "conformance.md"),
  "utf8",
);
let unexplained = 0;
try {
  console.log(
    "\nclient scenarios: checks passed directly / through dormouse / through it in the other era",
  );
  for (const [suite, scenarios] of Object.entries(suites)) {
    for (const [scenario, versions] of Object.entries(scenarios)) {
      if (chosen.length > 0 && !chosen.some((name) => scenario.startsWith(name))) continue;
      for (const version of versions) {
        const results = {};
        // Who logs in is dormouse, in whatever era its host speaks.
        const isGuarded = scenario.startsWith("auth/");
        for (const [column, way] of Object.entries(columns).slice(0, isGuarded ? 2 : 3)) {
          results[column] = await check(suite, scenario, version, way(version));
        }
        const passed = Object.values(results).map(
          (checks) => [...checks.values()].filter(Boolean).length,
        );
        console.log(`  ${scenario} ${version ?? ""}: ${passed.join(" / ")}`);
        if (passed[0] === 0) unexplained += 1;
        // Who does what should be refused gets further than who refuses it.
        const goesTooFar = [...results.direct.values()].includes(false);
        const isWorse = (column, id) =>
          goesTooFar ? results[column].get(id) === false : !results[column].get(id);
        for (const [id, isPassed] of results.direct) {
          const failed = Object.keys(results).filter((column) => isPassed && isWorse(column, id));
          if (failed.length === 0) continue;
          const isExplained = explained.includes(`\`${scenario}/${id}\``);
          unexplained += isExplained ? 0 : 1;
          const verdict = isExplained ? "explained" : "DIFFERS";
          console.log(`    ${verdict}: ${scenario}/${id} (${failed.join(", ")})`);
        }
        // Who logs in wrongly does harm, whatever others do.
        const failing = isGuarded
          ? [...results.proxied].filter(([, isPassed]) => !isPassed).map(([id]) => id)
          : [];
        unexplained += failing.length;
        for (const id of failing) console.log(`    FAILS: ${scenario}/${id}`);
      }
    }
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(unexplained === 0 ? 0 : 1);

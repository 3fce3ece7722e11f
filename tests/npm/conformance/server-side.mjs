// Runs the conformance suites against the fixture server, directly and with dormouse before it, and
// compares check by check. What passes directly has to pass through dormouse, unless
// docs/reference/conformance.md says why it does not.
//
// node server-side.mjs DORMOUSE FIXTURE

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { environmentIn, listening, proxied, run as runToEnd } from "./programs.mjs";
import { canReplicate, replicated } from "./replicas.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, "..", "node_modules");
const [dormouse, fixture] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "dormouse-conformance-"));

const suites = [
  { name: "0.1.16 all", package: "@modelcontextprotocol/conformance", options: ["--suite", "all"] },
  {
    name: "0.2.0 2025-11-25",
    package: "conformance-next",
    options: ["--requirements", "2025-11-25"],
  },
  {
    name: "0.2.0 2026-07-28",
    package: "conformance-next",
    options: ["--requirements", "2026-07-28"],
  },
];

const onStdio = JSON.stringify({ conformance: true });
const onHttp = JSON.stringify({ conformance: true, http: 0 });

// Each column is a way to the fixture, made anew for every suite.
const columns = {
  direct: () => listening(fixture, [onHttp]),
  "to stdio": () => proxied(dormouse, scratch, { command: fixture, args: [onStdio] }),
  "to http": async () => {
    const server = await listening(fixture, [onHttp]);
    const proxy = await proxied(dormouse, scratch, { url: server.url });
    return { url: proxy.url, end: () => proxy.end().then(server.end) };
  },
  wrapped: () => {
    const args = ["--http", "127.0.0.1:0", "--surface", "direct", "--", fixture, onStdio];
    return listening(dormouse, args, environmentIn(scratch));
  },
};
if (canReplicate) {
  columns.replicas = async () => {
    // Each replica has processes of its own, and the suites expect one server.
    const server = await listening(fixture, [onHttp]);
    const service = await replicated(dormouse, scratch, { url: server.url });
    return { url: service.url, end: () => service.end().then(server.end) };
  };
} else {
  console.log("not tested: replicas, since scripts/services has not been run");
}

/** Runs a suite; resolves with the status of each check, by "scenario/check". */
async function run(suite, url, output) {
  const program = join(packages, suite.package, "dist", "index.js");
  const args = [program, "server", "--url", url, ...suite.options, "-o", output];
  await runToEnd(process.execPath, args);
  const checks = new Map();
  for (const directory of readdirSync(output)) {
    const scenario = directory.replace(/^server-/, "").replace(/-\d{4}-\d{2}-\d{2}T.*$/, "");
    for (const check of JSON.parse(readFileSync(join(output, directory, "checks.json")))) {
      const key = `${scenario}/${check.id}`;
      const passed = check.status === "SUCCESS" || check.status === "INFO";
      checks.set(key, (checks.get(key) ?? true) && passed);
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
  for (const suite of suites) {
    const results = {};
    for (const [column, start] of Object.entries(columns)) {
      const server = await start();
      results[column] = await run(suite, server.url, mkdtempSync(join(scratch, "out-")));
      await server.end();
    }
    console.log(`\n${suite.name}`);
    for (const [column, checks] of Object.entries(results)) {
      const passed = [...checks.values()].filter(Boolean).length;
      console.log(`  ${column.padEnd(9)} ${passed} of ${checks.size} checks passed`);
      if (checks.size === 0) unexplained += 1;
    }
    for (const [check, passed] of results.direct) {
      const failed = Object.keys(columns).filter((column) => passed && !results[column].get(check));
      if (failed.length === 0) continue;
      const isExplained = explained.includes(`\`${check}\``);
      unexplained += isExplained ? 0 : 1;
      console.log(`  ${isExplained ? "explained" : "DIFFERS"}: ${check} (${failed.join(", ")})`);
    }
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(unexplained === 0 ? 0 : 1);

// dormouse in front of a URL, and the client in front of dormouse. Ends with the client's exit
// code.
//
// DORMOUSE=program SERVER=json node between.mjs URL; SERVER has more members for the server's
// entry.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { METADATA_DOCUMENT } from "./authorized.mjs";
import { proxied, run } from "./programs.mjs";

/** How dormouse logs in as the suite expects it. */
function oauth() {
  const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
  if (!scenario.startsWith("auth/")) return {};
  const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
  const isMachine = scenario.startsWith("auth/client-credentials");
  const known = {
    clientId: context.client_id ?? METADATA_DOCUMENT,
    clientSecret: context.client_secret,
    privateKey: context.private_key_pem,
    grant: isMachine ? "client_credentials" : undefined,
  };
  return { oauth: known };
}

const scratch = mkdtempSync(join(tmpdir(), "dormouse-between-"));
const more = JSON.parse(process.env.SERVER ?? "{}");
const proxy = await proxied(process.env.DORMOUSE, scratch, {
  url: process.argv.at(-1),
  ...oauth(),
  ...more,
});
// The suite ends what takes too long, and dormouse must not outlive that.
process.on("SIGTERM", () => proxy.end().then(() => process.exit(1)));
const client = join(import.meta.dirname, "client.mjs");
const code = await run(process.execPath, [client, proxy.url], {
  stdio: "inherit",
  env: { ...process.env, DORMOUSE_IS_BETWEEN: "1" },
});
await proxy.end();
rmSync(scratch, { recursive: true, force: true });
process.exit(code ?? 1);

// dormouse in front of a URL, and the client in front of dormouse. Ends with the client's exit code.
//
// DORMOUSE=program SERVER=json node between.mjs URL; SERVER has more members for the server's entry.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { proxied, run } from "./programs.mjs";

const scratch = mkdtempSync(join(tmpdir(), "dormouse-between-"));
const more = JSON.parse(process.env.SERVER ?? "{}");
const proxy = await proxied(process.env.DORMOUSE, scratch, { url: process.argv.at(-1), ...more });
// The suite ends what takes too long, and dormouse must not outlive that.
process.on("SIGTERM", () => proxy.end().then(() => process.exit(1)));
const client = join(import.meta.dirname, "client.mjs");
const code = await run(process.execPath, [client, proxy.url], { stdio: "inherit" });
await proxy.end();
rmSync(scratch, { recursive: true, force: true });
process.exit(code ?? 1);

// The programs that the conformance scripts start, and their end.

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Starts a program that prints where it listens; resolves with the URL and a way to end it. */
export function listening(command, args, env = process.env) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const end = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  return new Promise((resolve, reject) => {
    let said = "";
    const hear = (chunk) => {
      said += chunk;
      const url = said.match(/listening on (http:\S+)\n/);
      if (url) resolve({ url: url[1], end });
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("exit", (code) => reject(new Error(`${command} ended with ${code}: ${said}`)));
  });
}

/** The environment of a dormouse that writes nothing to the user's home. */
export function environmentIn(scratch) {
  return {
    ...process.env,
    HOME: scratch,
    XDG_DATA_HOME: join(scratch, "data"),
    XDG_CACHE_HOME: join(scratch, "cache"),
    DORMOUSE_NO_KEYCHAIN: "1",
  };
}

/** dormouse with one server; the URL is that of the server's own endpoint. */
export async function proxied(dormouse, scratch, entry) {
  const config = join(scratch, "dormouse.json");
  const described = { description: "The server that the suite asks.", ...entry };
  writeFileSync(config, JSON.stringify({ interactive: true, mcpServers: { fixture: described } }));
  const env = { ...environmentIn(scratch), BROWSER: join(import.meta.dirname, "browser.mjs") };
  const proxy = await listening(dormouse, ["--http", "127.0.0.1:0", "--config", config], env);
  return { ...proxy, url: proxy.url.replace(/\/mcp$/, "/servers/fixture/mcp") };
}

/** Runs a program to its end; resolves with its exit code. */
export function run(command, args, options = {}) {
  const child = spawn(command, args, { stdio: "ignore", ...options });
  return new Promise((resolve) => child.on("exit", resolve));
}

// Runs the real program: a host on stdio with fixture servers, and `dormouse ui`, in a home of
// their own.

import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const TARGET = process.env.CARGO_TARGET_DIR ?? join(import.meta.dirname, "../../target");
const DORMOUSE = join(TARGET, "debug/dormouse");
const FIXTURE = join(TARGET, "debug/examples/fixture");

/** Returns the entry of a fixture server with this script. */
export const fixture = (script = {}, entry = {}) => ({
  description: "A fixture",
  command: FIXTURE,
  args: [JSON.stringify(script)],
  ...entry,
});

/**
 * A user with a home, a host and the page. `dormouse.url` opens the page once.
 * Each process gets only the variables that are listed here.
 */
export class Dormouse {
  #home;
  #host = null;
  #page = null;
  #lastId = 0;
  #answers = new Map();

  static async start(servers, { host = true, settings = {} } = {}) {
    const dormouse = new Dormouse();
    dormouse.#home = await mkdtemp(join(tmpdir(), "dormouse-page-"));
    await mkdir(join(dormouse.#home, "run"), { mode: 0o700 });
    await writeFile(
      dormouse.#config,
      JSON.stringify({ ...settings, daemonIdleTimeout: "1s", mcpServers: servers }),
    );
    if (host) await dormouse.startHost();
    await dormouse.#startPage();
    return dormouse;
  }

  get #config() {
    return join(this.#home, "dormouse.json");
  }

  get #environment() {
    const { PATH } = process.env;
    return {
      PATH,
      HOME: this.#home,
      XDG_RUNTIME_DIR: join(this.#home, "run"),
      DORMOUSE_DAEMON: "1",
      DORMOUSE_NO_KEYCHAIN: "1",
    };
  }

  #spawn(...words) {
    const options = { env: this.#environment, cwd: this.#home, stdio: ["pipe", "pipe", "ignore"] };
    return spawn(DORMOUSE, ["--config", this.#config, ...words], options);
  }

  /** Runs a command to its end. */
  run(...words) {
    const options = { env: this.#environment, cwd: this.#home, encoding: "utf8" };
    const { status, stdout, stderr } = spawnSync(
      DORMOUSE,
      ["--config", this.#config, ...words],
      options,
    );
    if (status !== 0) throw new Error(`dormouse ${words.join(" ")}: ${stdout}${stderr}`);
    return stdout;
  }

  async #startPage() {
    this.#page = this.#spawn("ui", "--no-browser");
    for await (const line of createInterface({ input: this.#page.stdout })) {
      this.url = line;
      return;
    }
    throw new Error("dormouse ui has ended");
  }

  async startHost() {
    this.#host = this.#spawn();
    createInterface({ input: this.#host.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.#answers.get(message.id)?.(message);
    });
    const clientInfo = { name: "browser-test", version: "1" };
    await this.ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    this.#host.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    await this.ask("tools/list", {});
  }

  /** Sends a request of the host. Returns its result. */
  async ask(method, params) {
    const id = ++this.#lastId;
    const answer = new Promise((resolve) => this.#answers.set(id, resolve));
    this.#host.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return (await answer).result;
  }

  /** Calls a tool of a server as a model does. */
  call(tool, input = {}) {
    return this.ask("tools/call", {
      name: "use_tool",
      arguments: { tool_name: tool, tool_input: input },
    });
  }

  async config() {
    return JSON.parse(await readFile(this.#config, "utf8"));
  }

  async setServers(servers) {
    const config = await this.config();
    await writeFile(this.#config, JSON.stringify({ ...config, mcpServers: servers }));
  }

  /** Ends the host, and the daemon with its servers. */
  async stopHost() {
    if (!this.#host) return;
    await ended(this.#host, () => this.#host.stdin.end());
    this.#host = null;
    spawnSync(DORMOUSE, ["--config", this.#config, "daemon", "stop"], { env: this.#environment });
  }

  /** Ends the program that serves the page. */
  stopPage() {
    return ended(this.#page, () => this.#page.kill("SIGTERM"));
  }

  async close() {
    await this.stopPage();
    await this.stopHost();
    await rm(this.#home, { recursive: true, force: true });
  }
}

async function ended(process, end) {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const exit = new Promise((resolve) => process.once("exit", resolve));
  end();
  await exit;
}

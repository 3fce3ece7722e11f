// Three replicas of dormouse with a Redis, behind nginx with the file of deploy/.

import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { environmentIn, listening } from "./programs.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const services = process.env.DORMOUSE_SERVICES ?? join(root, "tests", "services");
const libraries = ["x86_64-linux-gnu", "aarch64-linux-gnu"];
const environment = {
  ...process.env,
  LD_LIBRARY_PATH: libraries.map((name) => join(services, "usr", "lib", name)).join(":"),
};
const programs = {
  redis: join(services, "usr", "bin", "redis-server"),
  nginx: join(services, "usr", "sbin", "nginx"),
};

/** Whether this machine has the programs: `scripts/services` unpacks them. */
export const canReplicate = Object.values(programs).every((program) => existsSync(program));

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Starts a program that listens on a port, and resolves with a function that ends it. */
async function started(program, args, port) {
  const child = spawn(program, args, { env: environment, stdio: ["ignore", "ignore", "inherit"] });
  const ended = once(child, "exit");
  for (let attempt = 0; ; attempt += 1) {
    const socket = connect(port, "127.0.0.1");
    const event = await Promise.race([
      once(socket, "connect").then(() => "connected"),
      once(socket, "error").then(() => "refused"),
    ]).catch(() => "refused");
    socket.destroy();
    if (event === "connected") break;
    if (attempt === 500) throw new Error(`${program} does not listen`);
    await sleep(20);
  }
  return async () => {
    child.kill("SIGTERM");
    await ended;
  };
}

/** Starts a service with one server; resolves with its URL and a function that ends it. */
export async function replicated(dormouse, scratch, entry) {
  const directory = mkdtempSync(join(scratch, "replicas-"));
  const store = await freePort();
  const data = ["--save", "", "--dir", directory];
  const ends = [
    await started(
      programs.redis,
      ["--bind", "127.0.0.1", "--port", `${store}`, ...data],
      store,
    ),
  ];
  const config = join(directory, "dormouse.json");
  const settings = {
    store: `redis://127.0.0.1:${store}/0`,
    storeKeys: ["a key of at least thirty-two bytes"],
    mcpServers: { fixture: { ...entry, description: "The fixture." } },
  };
  writeFileSync(config, JSON.stringify(settings));
  let balancer = readFileSync(join(root, "deploy", "nginx.conf"), "utf8");
  for (const number of [1, 2, 3]) {
    const args = ["--config", config, "--http", "127.0.0.1:0"];
    const replica = await listening(dormouse, args, environmentIn(directory));
    ends.unshift(replica.end);
    balancer = balancer.replaceAll(`dormouse-${number}:8080`, new URL(replica.url).host);
  }
  const port = await freePort();
  balancer = balancer.replaceAll("/tmp", directory);
  balancer = balancer.replaceAll("listen 8080", `listen 127.0.0.1:${port}`);
  const file = join(directory, "nginx.conf");
  writeFileSync(file, balancer);
  const foreground = ["-g", "daemon off; master_process off;", "-e", "stderr"];
  ends.unshift(await started(programs.nginx, [...foreground, "-p", directory, "-c", file], port));
  const end = async () => {
    for (const end of ends) await end();
  };
  return { url: `http://127.0.0.1:${port}/servers/fixture/mcp`, end };
}

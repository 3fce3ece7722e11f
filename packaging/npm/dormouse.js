#!/usr/bin/env node
// Starts the program of this platform, which npm has installed beside this package, in its own place as far as that is
// possible: with the same arguments, streams and signals, and ending as it ends.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const name = process.platform === "win32" ? "dormouse.exe" : "dormouse";

let program;
try {
  program = require.resolve(`@dormouse-mcp/${platform}/${name}`);
} catch {
  console.error(
    `dormouse: there is no package for ${platform}, or npm was told to leave optional dependencies out; ` +
      "see https://github.com/dormouse-mcp/dormouse for other ways to install it",
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // At a terminal the program has got it too; it takes the second for the first.
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`dormouse: cannot start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});

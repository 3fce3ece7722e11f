#!/usr/bin/env node
// A browser whose user says yes to everything: it follows where it is sent, and ends.

await fetch(process.argv[2]).then((response) => response.text());

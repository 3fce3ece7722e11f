// The last lines of standard error of one server.

import * as api from "./api.js";
import { byId, setText, showText } from "./dom.js";
import { revealed } from "./format.js";
import { Reader } from "./reader.js";

export class StderrSection {
  #server = null;
  #box = byId("stderr");
  #reader = new Reader(
    (signal) => api.getStderr(this.#server, signal),
    (lines) => this.#draw(lines),
    (error) => this.#showStatus(`Standard error cannot be read: ${revealed(error.message)}.`),
  );

  open(server) {
    this.#server = server;
    this.#reader.stop();
    this.#box.hidden = true;
    setText(this.#box, "");
    this.#showStatus("Loading…");
  }

  read() {
    this.#reader.read();
  }

  #draw(lines) {
    this.#showStatus(lines.length ? "" : "No output on standard error.");
    if (this.#hasSelection()) return;
    const box = this.#box;
    const isAtEnd = box.hidden || box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
    box.hidden = lines.length === 0;
    setText(box, lines.map(revealed).join("\n"));
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  }

  #showStatus(text) {
    showText(byId("stderr-status"), text);
  }

  /** Returns whether text in the box is selected; new lines would end the selection. */
  #hasSelection() {
    const selection = getSelection();
    return !selection.isCollapsed && this.#box.contains(selection.anchorNode);
  }
}

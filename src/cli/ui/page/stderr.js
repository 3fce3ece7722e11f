// The last lines of standard error of one server.

import * as api from "./api.js";
import { byId, setText, showText } from "./dom.js";
import { revealed } from "./format.js";

export class StderrSection {
  #server = null;
  #box = byId("stderr");

  open(server) {
    this.#server = server;
    this.#draw([]);
    showText(byId("stderr-empty"), "Loading…");
  }

  async poll() {
    const server = this.#server;
    try {
      const lines = await api.getStderr(server);
      if (server === this.#server) this.#draw(lines);
    } catch (error) {
      if (server === this.#server)
        showText(byId("stderr-empty"), `It cannot be read: ${revealed(error.message)}`);
    }
  }

  #draw(lines) {
    showText(byId("stderr-empty"), lines.length ? "" : "It wrote nothing.");
    if (this.#hasSelection()) return;
    const box = this.#box;
    const isAtEnd = box.hidden || box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
    box.hidden = lines.length === 0;
    setText(box, lines.map(revealed).join("\n"));
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  }

  /** Returns whether text in the box is selected; new lines would end the selection. */
  #hasSelection() {
    const selection = getSelection();
    return !selection.isCollapsed && this.#box.contains(selection.anchorNode);
  }
}

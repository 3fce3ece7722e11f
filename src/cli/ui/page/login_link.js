// The progress of a login, with the link to the login page.

import { element, setAttribute, setHidden, setText } from "./dom.js";
import { revealed } from "./format.js";

export function createLoginProgress() {
  const text = element("span");
  const link = element("a", { target: "_blank", rel: "noopener noreferrer" });
  const node = element("p", { class: "action-status", role: "status" }, text, link);
  return {
    node,
    update(progress) {
      const address = progress?.state === "waiting" ? webAddress(progress.address) : null;
      setHidden(link, !address);
      if (address) {
        setAttribute(link, "href", address.href);
        setText(link, `Open the login page of ${address.host}`);
      }
      setText(text, describeProgress(progress, address));
      node.classList.toggle("bad", Boolean(progress) && !address);
    },
  };
}

function describeProgress(progress, address) {
  if (!progress) return "";
  if (progress.state === "failed") return `The login failed: ${revealed(progress.error)}`;
  return address ? "Waiting for the login." : "The address of the login page is not a web address.";
}

/** Returns the parsed address if it is a web address: a link must not run a script. */
function webAddress(text) {
  try {
    const address = new URL(text);
    return ["https:", "http:"].includes(address.protocol) ? address : null;
  } catch {
    return null;
  }
}

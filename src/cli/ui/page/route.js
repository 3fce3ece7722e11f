// The fragment of the address says which view is shown and which server is open: `#servers/github`.

const VIEWS = ["servers", "calls", "search", "savings"];

/**
 * Returns the view and the server that a fragment names. An unknown fragment names the first view.
 */
export function parseFragment(fragment) {
  const [view, ...rest] = fragment.replace(/^#/, "").split("/");
  if (!VIEWS.includes(view)) return { view: VIEWS[0], server: null };
  return { view, server: view === "servers" ? decode(rest.join("/")) || null : null };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Shows a view: its section, its link in the navigation and the title of the document. */
export function showView(view) {
  for (const name of VIEWS) {
    const link = document.querySelector(`nav a[href="#${name}"]`);
    document.getElementById(`view-${name}`).hidden = name !== view;
    if (name !== view) {
      link.removeAttribute("aria-current");
      continue;
    }
    link.setAttribute("aria-current", "page");
    document.title = `${link.textContent} – dormouse`;
  }
}

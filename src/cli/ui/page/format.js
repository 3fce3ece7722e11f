// Turns values into texts for people.

const NUMBER = new Intl.NumberFormat("en");
const COMPACT = new Intl.NumberFormat("en", {
  notation: "compact",
  compactDisplay: "long",
  maximumSignificantDigits: 3,
});
const ABBREVIATED = new Intl.NumberFormat("en", {
  notation: "compact",
  maximumSignificantDigits: 2,
});
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DATE_AND_CLOCK = new Intl.DateTimeFormat("en-GB", {
  dateStyle: "medium",
  timeStyle: "medium",
});

// The characters that the program calls invisible (`is_invisible` in src/base/characters.rs),
// except line breaks and tabs.
const INVISIBLE = new RegExp(
  [
    String.raw`[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u1160]`,
    String.raw`[\u17B4\u17B5\u180B-\u180F\u200B\u200C\u200E\u200F\u2028-\u202E\u2060-\u206F]`,
    String.raw`[\u2800\u3164\uFE00-\uFE0D\uFEFF\uFFA0\uFFF0-\uFFFB]`,
    String.raw`[\u{1D173}-\u{1D17A}\u{E0000}-\u{E0FFF}]`,
    // A zero-width joiner or a variation selector inside an emoji is left alone.
    String.raw`(?<!\p{Extended_Pictographic}[\uFE0F\u{1F3FB}-\u{1F3FF}]?)\u200D`,
    String.raw`(?<!\p{Extended_Pictographic}|[0-9#*](?=\uFE0F\u20E3))[\uFE0E\uFE0F]`,
  ].join("|"),
  "gu",
);

/**
 * Replaces characters that are invisible or that reorder a text by their code point, such as
 * `[U+202E]`.
 */
export function revealed(text) {
  return String(text ?? "").replace(INVISIBLE, (character) => `[${codePoint(character)}]`);
}

function codePoint(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

export const number = (value) => NUMBER.format(value);

/** Formats a count: `1 tool`, `1,200 tools`. */
export const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

/** Formats a large number in words: `1.2 million tokens`. */
export const compactCount = (value, noun) =>
  `${value < 1e6 ? number(value) : COMPACT.format(value)} ${noun}${value === 1 ? "" : "s"}`;

// Keeps one decimal of a value below 10.
const short = (value) => Number(value.toFixed(value < 10 ? 1 : 0));

/** Formats a number for an axis: `120K`. */
export const abbreviated = (value) => ABBREVIATED.format(value);

export function bytes(value) {
  if (value < 1000) return count(value, "byte");
  const power = Math.min(Math.floor(Math.log10(value) / 3), 4);
  const scaled = value / 1000 ** power;
  return `${short(scaled)} ${["", "kB", "MB", "GB", "TB"][power]}`;
}

export function duration(milliseconds) {
  if (milliseconds < 1000) return `${short(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${short(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} days`;
}

/** Formats the time since a moment given in seconds since 1970. */
export function ago(seconds) {
  const passed = Date.now() / 1000 - seconds;
  return passed < 5 ? "just now" : `${duration(passed * 1000)} ago`;
}

export const clock = (date) => (isNaN(date) ? "unknown" : CLOCK.format(date));
export const dateAndClock = (date) => (isNaN(date) ? "unknown" : DATE_AND_CLOCK.format(date));

/**
 * Indents JSON without parsing its values, so that long numbers and repeated keys stay as they are.
 */
export function prettyJson(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  // Deep values are not indented further, since the text would grow with the square of the depth.
  const line = () => `\n${"  ".repeat(Math.min(depth, 60))}`;
  return text.replace(
    /"[^"\\]*(?:\\.[^"\\]*)*"|[[{]\s*[\]}]|[[\]{},:]|\s+|[^\s[\]{},:"]+/g,
    (token) => {
      if (/^\s/.test(token)) return "";
      if (/^[[{]\s*[\]}]$/.test(token)) return token.replace(/\s/g, "");
      if (token === "{" || token === "[") return (depth++, token + line());
      if (token === "}" || token === "]") return (depth--, line() + token);
      if (token === ",") return token + line();
      return token === ":" ? ": " : token;
    },
  );
}

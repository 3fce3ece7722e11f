// Sorts the hours of the savings into equal spans that end now, in local time.

const HOUR = 3600;

const HOUR_LABEL = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const HOUR_TITLE = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const DAY_LABEL = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const DAY_TITLE = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
});

/** Returns the last 24 hours, oldest first, as `{start, label, title, turns, tokens}`. */
export function lastHours(hours, now = new Date()) {
  const current = Math.floor(now / 1000 / HOUR) * HOUR;
  const starts = Array.from({ length: 25 }, (_, index) => current + (index - 23) * HOUR);
  return sumBetween(starts, hours, HOUR_LABEL, HOUR_TITLE);
}

/** Returns the last 14 days, today included. A day can have 23 or 25 hours. */
export function lastDays(hours, now = new Date()) {
  const midnight = (offset) =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate() + offset) / 1000;
  const starts = Array.from({ length: 15 }, (_, index) => midnight(index - 13));
  return sumBetween(starts, hours, DAY_LABEL, DAY_TITLE);
}

function sumBetween(starts, hours, labels, titles) {
  const spans = starts.slice(0, -1).map((start) => {
    const date = new Date(start * 1000);
    return { start, label: labels.format(date), title: titles.format(date), turns: 0, tokens: 0 };
  });
  for (const { start, turns, tokens } of hours) {
    const index = starts.findLastIndex((from) => from <= start);
    if (index < 0 || index >= spans.length) continue;
    spans[index].turns += turns;
    spans[index].tokens += tokens;
  }
  return spans;
}

// The filters of lists.

/** Returns whether a text contains each word of a query, in any case. */
export function matches(text, query) {
  const folded = text.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => folded.includes(word));
}

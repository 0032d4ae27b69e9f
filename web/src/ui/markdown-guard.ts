// Which texts are read as Markdown: some are made to keep a reader busy for seconds, or to nest until it breaks.

const LENGTH_MAX = 50_000;
const MARKS_MAX = 1_000;
const DEPTH_MAX = 50;
const INDENT_MAX = 120;

/** What can open emphasis, a link or code; reading them grows with the square of their number. */
const MARK = /[*_[\]`~]/g;
/** What opens quotes and lists at the beginning of a line. */
const OPENING = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t]))+/gm;
const OPENED = />|[-*+](?=[ \t])|\d[.)]/g;
const INDENTED = new RegExp(`^[ \\t]{${INDENT_MAX}}`, "m");

export function isReadable(text: string): boolean {
  if (text.length > LENGTH_MAX || INDENTED.test(text)) return false;
  if ((text.match(MARK)?.length ?? 0) > MARKS_MAX) return false;
  return (text.match(OPENING) ?? []).every((line) => (line.match(OPENED)?.length ?? 0) <= DEPTH_MAX);
}

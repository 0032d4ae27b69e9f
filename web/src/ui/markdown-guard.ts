// Which texts are parsed as Markdown: hostile ones take the parser seconds or overflow its stack.

const LENGTH_MAX = 50_000;
const MARKS_MAX = 1_000;
const DEPTH_MAX = 50;
const INDENT_MAX = 120;

/** Openers of emphasis, links and code; parsing them takes quadratic time. */
const MARK = /[*_[\]`~]/g;
/** Openers of quotes and lists at the beginning of a line. */
const OPENING = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t]))+/gm;
const OPENED = />|[-*+](?=[ \t])|\d[.)]/g;
const INDENTED = new RegExp(`^[ \\t]{${INDENT_MAX}}`, "m");

export function isReadable(text: string): boolean {
  if (text.length > LENGTH_MAX || INDENTED.test(text)) return false;
  if ((text.match(MARK)?.length ?? 0) > MARKS_MAX) return false;
  return (text.match(OPENING) ?? []).every((line) => (line.match(OPENED)?.length ?? 0) <= DEPTH_MAX);
}

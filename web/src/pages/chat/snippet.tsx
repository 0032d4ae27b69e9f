// A search snippet with matches marked; offsets count characters, not bytes.
export function Snippet({ text, highlights }: { text: string; highlights: { start: number; end: number }[] }) {
  const characters = Array.from(text);
  const parts: React.ReactNode[] = [];
  let at = 0;
  for (const { start, end } of [...highlights].sort((a, b) => a.start - b.start)) {
    if (start < at) continue;
    parts.push(characters.slice(at, start).join(""), <mark key={start}>{characters.slice(start, end).join("")}</mark>);
    at = end;
  }
  parts.push(characters.slice(at).join(""));
  return <>{parts}</>;
}

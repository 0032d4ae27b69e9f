// A sentence with `code` in backticks.

export function Inline({ text }: { text: string }) {
  const parts = text.split("`");
  // Unbalanced backticks are not markup.
  if (parts.length % 2 === 0) return <>{text}</>;
  return <>{parts.map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))}</>;
}

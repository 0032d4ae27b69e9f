// A sentence in which `words like these` are code.

export function Inline({ text }: { text: string }) {
  const parts = text.split("`");
  // An odd number of marks is no markup.
  if (parts.length % 2 === 0) return <>{text}</>;
  return <>{parts.map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))}</>;
}

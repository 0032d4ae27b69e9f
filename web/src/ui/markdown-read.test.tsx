// Markdown as elements; links and images are tested in a browser.
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { elementOf } from "./markdown-read";

const drawn = (text: string) => renderToStaticMarkup(<>{elementOf(text)}</>);

test("tables, task lists and strikethrough are parsed, text after text", () => {
  for (const word of ["one", "two"]) {
    expect(drawn(`~~${word}~~`)).toBe(`<p><del>${word}</del></p>`);
    expect(drawn(`|${word}|\n|-|\n|1|`)).toMatch(new RegExp(`<table>.*<th>${word}</th>.*<td>1</td>.*</table>`, "s"));
    expect(drawn(`- [x] ${word}`)).toContain('type="checkbox"');
  }
});

test("HTML stays text", () => {
  expect(drawn("<b>x</b> <script>y</script>")).toBe("<p>&lt;b&gt;x&lt;/b&gt; &lt;script&gt;y&lt;/script&gt;</p>");
});

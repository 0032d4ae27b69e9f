// Syntax highlighting for common languages; loaded with the first code block.
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import ini from "highlight.js/lib/languages/ini";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";

export type Span = string | { kind: Kind; children: Span[] };
export type Kind = "keyword" | "string" | "number" | "comment" | "name" | "type" | "plain";

const lowlight = createLowlight({ bash, css, diff, ini, javascript, json, python, rust, sql, typescript, xml, yaml });
lowlight.registerAlias({ bash: ["sh", "shell", "console"], ini: ["toml"], xml: ["html"], yaml: ["yml"], javascript: ["js", "jsx"], typescript: ["ts", "tsx"], python: ["py"], rust: ["rs"] });

const kinds: Record<string, Kind> = {
  "hljs-keyword": "keyword",
  "hljs-literal": "keyword",
  "hljs-selector-tag": "keyword",
  "hljs-string": "string",
  "hljs-addition": "string",
  "hljs-regexp": "string",
  "hljs-number": "number",
  "hljs-comment": "comment",
  "hljs-meta": "comment",
  "hljs-title": "name",
  "hljs-attr": "name",
  "hljs-attribute": "name",
  "hljs-section": "name",
  "hljs-name": "name",
  "hljs-type": "type",
  "hljs-built_in": "type",
  "hljs-class": "type",
  "hljs-deletion": "number",
};

type Nodes = ReturnType<typeof lowlight.highlight>["children"];

export function highlight(text: string, language: string): Span[] | null {
  const name = language.toLowerCase();
  return lowlight.registered(name) ? spansOf(lowlight.highlight(name, text).children) : null;
}

function spansOf(nodes: Nodes): Span[] {
  return nodes.flatMap((node): Span[] => {
    if (node.type === "text") return [node.value];
    if (node.type !== "element") return [];
    const classes = node.properties["className"];
    const kind = Array.isArray(classes) ? kinds[String(classes[0])] : undefined;
    return [{ kind: kind ?? "plain", children: spansOf(node.children as Nodes) }];
  });
}

// Lint rules: strict types, rules of hooks, and no HTML from strings.
import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "node_modules", "src/api/generated"] },
  js.configs.recommended,
  ...tseslint.configs.strict,
  {
    files: ["**/*.{ts,tsx}"],
    plugins: { "react-hooks": hooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "@typescript-eslint/consistent-type-imports": "error",
      "no-restricted-syntax": [
        "error",
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "untrusted text never becomes HTML" },
        { selector: "MemberExpression[property.name=/^(inner|outer)HTML$/]", message: "untrusted text never becomes HTML" },
        { selector: "CallExpression[callee.name='eval']", message: "the page's policy forbids eval" },
      ],
      "max-lines": ["error", { max: 300 }],
    },
  },
  { files: ["src/i18n/{en,zh}/**"], rules: { "max-lines": "off" } },
  { files: ["scripts/**"], languageOptions: { globals: { console: "readonly", process: "readonly", URL: "readonly" } } },
);

// Texts in English and Chinese with typed keys; the browser's language unless chosen.
import { createContext, useContext, useMemo, useState, type ReactNode } from "react";
import * as en from "./en";
import * as zh from "./zh";
import { fill, type Values } from "./fill";

export type Language = "en" | "zh";
type Texts = typeof en;
export type Key = { [Area in keyof Texts]: `${Area & string}.${keyof Texts[Area] & string}` }[keyof Texts];
export type T = (key: Key, values?: Values) => string;

const dictionaries: Record<Language, Record<string, Record<string, string>>> = { en, zh };
const STORED = "greenroom.language";

interface Choice {
  language: Language;
  setLanguage: (language: Language) => void;
  t: T;
}

const Context = createContext<Choice | null>(null);

export function translate(language: Language, key: string, values?: Values): string {
  const dot = key.indexOf(".");
  const text = dictionaries[language][key.slice(0, dot)]?.[key.slice(dot + 1)];
  return text === undefined ? key : fill(text, language, values);
}

function preferred(): Language {
  const stored = localStorage.getItem(STORED);
  if (stored === "en" || stored === "zh") return stored;
  const first = navigator.languages.find((name) => /^(zh|en)\b/i.test(name));
  return first?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** Set before the first request: requests carry the page's language. */
function announced(language: Language): Language {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  return language;
}

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, choose] = useState<Language>(() => announced(preferred()));
  const choice = useMemo<Choice>(
    () => ({
      language,
      setLanguage: (next) => {
        localStorage.setItem(STORED, next);
        choose(announced(next));
      },
      t: (key, values) => translate(language, key, values),
    }),
    [language],
  );
  return <Context.Provider value={choice}>{children}</Context.Provider>;
}

export function useLanguage(): Choice {
  const choice = useContext(Context);
  if (!choice) throw new Error("there is no LanguageProvider above");
  return choice;
}

/** `const t = useT(); t("chat.send")`. */
export function useT(): T {
  return useLanguage().t;
}

/** The text of a key built at run time, such as a status, or a fallback. */
export function useTextOf(): (area: keyof Texts, key: string, otherwise: string) => string {
  const { language } = useLanguage();
  return (area, key, otherwise) => dictionaries[language][area]?.[key] ?? otherwise;
}

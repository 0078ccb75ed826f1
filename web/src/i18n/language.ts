/** The language of the interface. What Pyrometer found out about a program stays as it was written. */
import { CHINESE } from "./chinese";

/** Languages of the interface. */
export type Language = "en" | "zh";

const KEY = "pyrometer.language";
let current: Language = "en";
const listeners = new Set<() => void>();

/** The language in use. */
export function language(): Language {
  return current;
}

/** The text in the reader's language; `{name}` is replaced by the value of that name. English texts are the keys. */
export function t(text: string, values: Readonly<Record<string, string | number>> = {}): string {
  const said = current === "zh" ? (CHINESE[text] ?? text) : text;
  return said.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** Use a language from now on; everything that called `onLanguage` is told. */
export function setLanguage(chosen: Language): void {
  current = chosen;
  remember(chosen);
  for (const listener of listeners) listener();
}

/** Be told when the language changes; returns how to stop. */
export function onLanguage(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** What the reader chose before, else what the browser prefers. */
export function startLanguage(preferred: readonly string[] = navigator.languages): void {
  current = remembered() ?? (preferred[0]?.toLowerCase().startsWith("zh") ? "zh" : "en");
}

function remembered(): Language | null {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "en" || kept === "zh" ? kept : null;
  } catch {
    return null; // pages from disk may have no storage
  }
}

function remember(chosen: Language): void {
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    return; // chosen for this visit only
  }
}

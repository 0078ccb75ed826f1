/** The language of a page: that of the interface, and of what Pyrometer says of a program where its page has that in both. */

/** Languages of the interface. */
export type Language = "en" | "zh";

/** English text → the same in another language. */
export type Dictionary = Readonly<Record<string, string>>;

const KEY = "pyrometer.language";
let current: Language = "en";
let dictionary: Dictionary | null = null;
let said: Dictionary = {};
let source: () => Promise<Dictionary> = () => Promise.resolve({});
const listeners = new Set<() => void>();

/** The language in use. */
export function language(): Language {
  return current;
}

/** The text in the reader's language, a sentence of this page among them; `{name}` is replaced by the value of that name. English texts are the keys. */
export function t(text: string, values: Readonly<Record<string, string | number>> = {}): string {
  const found = translated(text, current) ?? spoken(text, current) ?? text;
  return found.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** A text as the dictionary of a language has it; undefined where it has none. English is its own dictionary. */
export function translated(text: string, into: Language): string | undefined {
  if (into === "en") return text;
  return dictionary !== null && Object.hasOwn(dictionary, text) ? dictionary[text] : undefined;
}

/** A sentence of this page as it is said in a language; undefined where it is known in English only. */
export function spoken(sentence: string, into: Language): string | undefined {
  return into !== "en" && Object.hasOwn(said, sentence) ? said[sentence] : undefined;
}

/** The sentences of this page, and how they are said in Chinese. */
export function learn(sentences: Dictionary): Dictionary {
  said = sentences;
  return sentences;
}

/** A dictionary out of the English texts and their translations, which stand in the same order. */
export function paired(english: readonly string[], others: readonly string[]): Dictionary {
  return Object.fromEntries(english.map((text, place) => [text, others[place] ?? text]));
}

/** Use a language from now on, as soon as its dictionary is read; everything that called `onLanguage` is told. */
export async function setLanguage(chosen: Language): Promise<void> {
  remember(chosen);
  await turnTo(chosen);
}

/** Be told when the language changes; returns how to stop. */
export function onLanguage(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Begin in English; turn to what the reader chose before, else to what the browser prefers. */
export function startLanguage(
  read: () => Promise<Dictionary>,
  preferred: readonly string[] = navigator.languages,
): Promise<void> {
  source = read;
  return turnTo(remembered() ?? (preferred[0]?.toLowerCase().startsWith("zh") ? "zh" : "en"));
}

async function turnTo(chosen: Language): Promise<void> {
  // A page without the dictionary, such as an older one, stays as it is.
  if (chosen !== "en") dictionary ??= await source().catch(() => null);
  if (chosen === current || (chosen !== "en" && dictionary === null)) return;
  current = chosen;
  for (const listener of listeners) listener();
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

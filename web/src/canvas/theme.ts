/** Colours of the style sheet, for canvases, which cannot name its variables. */
import { useEffect, useState } from "preact/hooks";

const values = new Map<string, string>();

/** The value of a variable such as `--ink`, as it is now: it changes with the theme. */
export function colour(variable: string): string {
  watch();
  let value = values.get(variable);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
    values.set(variable, value);
  }
  return value;
}

/** Colours of the phases, as in the static charts; safe for the colour-blind. */
export const PHASES = Array.from({ length: 12 }, (_, i) => `--phase-${i}`);

const listeners = new Set<() => void>();
let version = 0;

/** Be told when the colours change; returns how to stop. */
export function onTheme(listener: () => void): () => void {
  watch();
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Tell everyone that the colours have changed. */
export function themeChanged(): void {
  version += 1;
  values.clear();
  for (const listener of [...listeners]) listener();
}

/** How often the colours have changed: what is made of them, such as a palette, is kept under this number. */
export function themeVersion(): number {
  return version;
}

/** The same for a component, which is drawn anew when it changes. */
export function useThemeVersion(): number {
  const [seen, setSeen] = useState(version);
  useEffect(() => onTheme(() => setSeen(version)), []);
  return seen;
}

let watching = false;

/** A change of the system's theme needs no button; the reader's own choice stands on the root element. */
function watch(): void {
  if (watching) return;
  watching = true;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);
  new MutationObserver(themeChanged).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

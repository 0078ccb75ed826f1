/** Colours of the style sheet, for canvases, which cannot name its variables. */

/** The value of a variable such as `--ink`, as it is now: it changes with the theme. */
export function colour(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

/** Colours of the phases, as in the static charts; safe for the colour-blind. */
export const PHASES = Array.from({ length: 10 }, (_, i) => `--phase-${i}`);

const listeners = new Set<() => void>();

/** Be told when the colours change; returns how to stop. */
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Tell everyone that the colours have changed. */
export function themeChanged(): void {
  for (const listener of listeners) listener();
}

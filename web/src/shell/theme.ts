/** Light or dark: as the system has it, or as the reader chose. The style sheet follows an attribute of the root. */

/** What a reader may choose. */
export type Theme = "auto" | "light" | "dark";

const KEY = "pyrometer.theme";
const THEMES: readonly Theme[] = ["auto", "light", "dark"];

/** The reader's choice, kept from an earlier visit where the browser allows that. */
export function chosenTheme(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? "auto";
  } catch {
    return "auto"; // pages from disk may have no storage
  }
}

/** Paint in a theme from now on. */
export function applyTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

/** Paint in a theme, and remember it. */
export function chooseTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return; // chosen for this visit only
  }
}

/** The choice after this one, in a circle. */
export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto";
}

/** Keys that hold on every page; each widget adds its own. */

/** What a key does. */
export type Action = "previous" | "next" | "search" | "help";

const ACTIONS: Readonly<Record<string, Action>> = { "[": "previous", "]": "next", "/": "search", "?": "help" };

/** All keys as the help tells them; what they do in English, to be translated. */
export const KEYS: readonly (readonly [keys: readonly string[], does: string])[] = [
  [["[", "]"], "Previous page, next page"],
  [["/"], "Search on this page"],
  [["?"], "Show or hide this help"],
  [["W", "S"], "In a drawing: closer, farther"],
  [["A", "D"], "In a drawing: to the left, to the right"],
  [["0"], "In a drawing: show all of it"],
  [["M"], "In the timeline: measure what is in view"],
  [["Esc"], "Clear the selection or the search"],
];

/** What a key press asks for; nothing while the reader writes, or when a widget has taken it. */
export function actionOf(event: KeyboardEvent): Action | null {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || writes(event.target)) return null;
  return ACTIONS[event.key] ?? null;
}

function writes(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

/** The first field of the page in view that takes a search. */
export function searchField(root: ParentNode): HTMLInputElement | null {
  const fields = root.querySelectorAll<HTMLInputElement>("input[type=search]");
  return [...fields].find((field) => field.checkVisibility()) ?? null;
}

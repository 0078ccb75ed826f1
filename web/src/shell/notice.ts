/** Tells the reader which parts of a link were not understood, and so are left out. */
import { t } from "../i18n/language";

const ID = "link-notice";
const told = new Set<string>();

/** Tell of parts of the address, such as `sort=colour`, above the page. */
export function leaveOut(parts: readonly string[]): void {
  for (const part of parts) told.add(part);
  if (parts.length > 0) sayLeftOut();
}

/** Nothing was left out so far: the address is a new one. */
export function forgetLeftOut(): void {
  told.clear();
  noticeShown()?.remove();
}

/** Where it is said, while there is something to say. */
export function noticeShown(): HTMLElement | null {
  return document.getElementById(ID);
}

/** Say it in the reader's language. */
export function sayLeftOut(): void {
  if (told.size === 0) return;
  let element = noticeShown();
  if (element === null) {
    element = document.createElement("p");
    element.id = ID;
    element.className = "caveat";
    element.setAttribute("role", "status");
    document.querySelector("main > .page-title")?.after(element);
  }
  element.textContent = t("This part of the link is not understood and left out: {parts}", { parts: [...told].join(" · ") });
}

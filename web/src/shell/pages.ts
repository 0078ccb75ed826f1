/** The pages of this document, as its list of pages names them. */
import { parseRoute } from "./router";

/** A page: its name in addresses, and its title. */
export interface PageEntry {
  readonly name: string;
  readonly title: string;
}

/** The pages in the order of the list; titles in English, as they stand in the document. */
export function pagesOf(root: ParentNode): PageEntry[] {
  return [...root.querySelectorAll<HTMLAnchorElement>("nav.pages a")].flatMap((link) => {
    const route = parseRoute(link.getAttribute("href") ?? "");
    return route === null ? [] : [{ name: route.page, title: link.textContent ?? route.page }];
  });
}

/** The page so many steps on; beyond the ends it stays. */
export function neighbour(pages: readonly PageEntry[], name: string, step: number): string {
  const at = pages.findIndex((page) => page.name === name);
  return pages[Math.min(Math.max(at + step, 0), pages.length - 1)]?.name ?? name;
}

/** Whether a part of the document stands on a page. */
export function standsOn(part: HTMLElement, page: string): boolean {
  return (part.dataset["page"] ?? "").split(" ").includes(page);
}

/**
 * The page on which to show an element: the one in view where the element stands there too, else the last of its pages,
 * which is the one that tells most about it.
 */
export function pageOfElement(element: Element, shown: string | undefined): string | undefined {
  const part = element.closest<HTMLElement>("[data-page]");
  if (part === null || (shown !== undefined && standsOn(part, shown))) return part === null ? undefined : shown;
  return part.dataset["page"]?.split(" ").at(-1);
}

/** Turns the static page into pages: shows one at a time, brings its widgets to life when it is first seen. */
import { render } from "preact";
import { Blocks } from "../data/blocks";
import { startLanguage } from "../i18n/language";
import { WIDGETS } from "../widgets/registry";
import { parseRoute, type Route } from "./router";

const FIRST = "overview";

export function startShell(page: Document): void {
  startLanguage();
  const blocks = new Blocks(page);
  const show = (): void => follow(page, blocks, location.hash);
  window.addEventListener("hashchange", show);
  show();
}

function follow(page: Document, blocks: Blocks, fragment: string): void {
  const anchor = fragment.length > 1 && !fragment.startsWith("#/") ? page.getElementById(fragment.slice(1)) : null;
  const named = parseRoute(fragment) ?? { page: pageOf(anchor) ?? FIRST, parameters: {} };
  const route = page.querySelector(`[data-page~="${CSS.escape(named.page)}"]`) ? named : { page: FIRST, parameters: {} };
  page.body.dataset["shown"] = route.page;
  for (const part of page.querySelectorAll<HTMLElement>("[data-page]")) {
    part.hidden = !(part.dataset["page"] ?? "").split(" ").includes(route.page);
  }
  for (const link of page.querySelectorAll<HTMLAnchorElement>("nav.pages a")) {
    if (parseRoute(link.hash)?.page === route.page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  mount(page, blocks, route);
  anchor?.scrollIntoView();
}

function pageOf(anchor: Element | null): string | undefined {
  return anchor?.closest<HTMLElement>("[data-page]")?.dataset["page"]?.split(" ").at(-1);
}

function mount(page: Document, blocks: Blocks, route: Route): void {
  for (const place of page.querySelectorAll<HTMLElement>("[data-widget]")) {
    const Widget = WIDGETS[place.dataset["widget"] ?? ""];
    if (Widget === undefined || place.closest("[hidden]") !== null) continue;
    render(<Widget blocks={blocks} place={{ ...place.dataset }} route={route} />, place);
    place.classList.add("mounted");
  }
}

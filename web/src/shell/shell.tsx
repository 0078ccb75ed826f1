/** Turns the document into pages: shows one at a time, and brings its interactive parts to life when it is first seen. */
import { render } from "preact";
import { themeChanged } from "../canvas/theme";
import { Blocks } from "../data/blocks";
import { labelTimes } from "../data/moments";
import { type Dictionary, language, learn, onLanguage, paired, startLanguage, t } from "../i18n/language";
import { translateStatic } from "../i18n/static";
import { TEXTS } from "../i18n/texts";
import { KEYS, WIDGETS } from "../widgets/registry";
import { enhanceTables } from "../widgets/table/enhance";
import { Controls } from "./Controls";
import { Help } from "./Help";
import { forgetLeftOut, leaveOut, noticeShown, sayLeftOut } from "./notice";
import { actionOf, searchField } from "./keys";
import { neighbour, type PageEntry, pageOfElement, pagesOf, standsOn } from "./pages";
import { decoded, go, note, parseRoute, type Route } from "./router";

const FIRST = "overview";

/** Divide a document into its pages, and follow its address from now on. */
export function startShell(document: Document): void {
  const shell = new Shell(document);
  shell.follow();
  window.addEventListener("hashchange", () => shell.follow());
  document.addEventListener("keydown", (event) => shell.press(event));
  onLanguage(() => shell.speak());
  void startLanguage(async () => ({ ...paired(TEXTS, await shell.blocks.read("language/zh")), ...learn((await shell.blocks.read("language/said").catch(() => ({}))) as Dictionary) }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);
  document.documentElement.classList.remove("starting", "elsewhere-first");
}

class Shell {
  private readonly pages: PageEntry[];
  readonly blocks: Blocks;
  private readonly main: HTMLElement;
  private readonly heading: HTMLHeadingElement;
  private readonly name: string;
  private readonly help: HTMLElement;
  private readonly asText: HTMLElement;
  private helping = false;
  private route: Route = { page: FIRST, parameters: {} };

  constructor(private readonly document: Document) {
    this.pages = pagesOf(document);
    this.blocks = new Blocks(document);
    this.main = document.querySelector("main") ?? document.body;
    this.name = document.title;
    this.heading = document.createElement("h1");
    this.heading.className = "page-title";
    this.main.prepend(this.heading);
    // Anchors of pages serve only readers without a script: with it the browser would scroll to them.
    for (const mark of this.main.querySelectorAll('span[id^="/"]')) mark.remove();
    if (location.hash.startsWith("#/")) scrollTo(0, 0);
    labelTimes(document);
    this.asText = this.main.appendChild(document.createElement("p"));
    this.asText.className = "tools text-choice";
    this.help = document.body.appendChild(document.createElement("div"));
    this.speak();
  }

  /** Show what the address names: a page, or the page of an element. */
  follow(): void {
    const fragment = location.hash;
    const shown = this.document.body.dataset["shown"];
    const anchor = fragment.startsWith("#/") ? null : this.document.getElementById(decoded(fragment.slice(1)));
    const named = parseRoute(fragment)?.page ?? (anchor === null ? FIRST : (pageOfElement(anchor, shown) ?? shown ?? FIRST));
    const page = this.pages.some((entry) => entry.name === named) ? named : FIRST;
    forgetLeftOut();
    if (page !== named && fragment.startsWith("#/")) {
      note(page, {});
      if (named !== "") leaveOut([`#/${named}`]);
    }
    this.route = { page, parameters: (page === named && parseRoute(fragment)?.parameters) || {}, from: anchor === null ? shown : undefined };
    if (page !== shown) this.turnTo(page);
    this.mount();
    if (anchor === null) leaveOut(fragment.startsWith("#/") ? this.strangers() : fragment === "" ? [] : [decoded(fragment)]);
    enhanceTables(this.main);
    if (anchor !== null) reveal(anchor);
    else {
      if (page !== shown && shown !== undefined) this.focusHeading();
      this.bringAsked();
    }
  }

  /** A part further down that the address names comes into view; what of it is left out stays in view instead. */
  private bringAsked(): void {
    const [, ...lower] = this.main.querySelectorAll<HTMLElement>(".mounted:not(.elsewhere)");
    const asked = lower.find((place) => Object.keys(this.route.parameters).some((key) => KEYS.get(place.dataset["widget"] ?? "")?.test(key)));
    if (asked !== undefined) settle(asked);
  }

  /** Everything in the reader's language. */
  speak(): void {
    this.document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
    translateStatic(this.document.body, language());
    this.title();
    const controls = this.document.querySelector(".controls");
    if (controls !== null) render(<Controls key={language()} onHelp={() => this.showHelp(true)} />, controls);
    this.showHelp(this.helping);
    this.offerText();
    sayLeftOut();
    themeChanged(); // canvases hold words too
    if (this.document.body.dataset["shown"] !== undefined) this.mount();
  }

  /** Do what a key asks for. */
  press(event: KeyboardEvent): void {
    const action = this.pages.length > 1 || event.key === "/" || event.key === "?" ? actionOf(event) : null;
    const field = action === "search" ? searchField(this.main) : null;
    if (action === null || (action === "search" && field === null)) return;
    event.preventDefault();
    if (action === "help") this.showHelp(!this.helping);
    else if (field !== null) field.focus();
    else go(neighbour(this.pages, this.route.page, action === "next" ? 1 : -1));
  }

  private turnTo(page: string): void {
    this.document.body.dataset["shown"] = page;
    const parts = [...this.main.querySelectorAll<HTMLElement>("[data-page]")];
    for (const part of parts) part.classList.toggle("elsewhere", !standsOn(part, page));
    const isReplaced = [...this.main.querySelectorAll("[data-static]:not(.elsewhere)")].some((part) => part.closest(".elsewhere") === null);
    this.asText.hidden = page === FIRST || !isReplaced;
    const leading = parts.find((part) => part.dataset["widget"] === undefined && standsOn(part, page));
    for (const part of parts) part.classList.toggle("leading", part === leading);
    for (const link of this.document.querySelectorAll<HTMLAnchorElement>("nav.pages a")) {
      const here = parseRoute(link.hash)?.page === page;
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
      if (here) centre(link);
    }
    this.title();
  }

  private title(): void {
    const entry = this.pages.find(({ name }) => name === this.route.page && name !== FIRST);
    this.heading.textContent = entry === undefined ? "" : t(entry.title);
    this.heading.hidden = entry === undefined;
    this.document.title = entry === undefined ? this.name : `${t(entry.title)} · ${this.name}`;
  }

  private mount(): void {
    for (const place of this.main.querySelectorAll<HTMLElement>("[data-widget]")) {
      const Widget = WIDGETS.get(place.dataset["widget"] ?? "");
      if (Widget === undefined || place.closest(".elsewhere") !== null) continue;
      render(<Widget blocks={this.blocks} place={{ ...place.dataset }} route={this.route} />, place);
      place.classList.add("mounted");
    }
  }

  /** What the address says to nothing on its page. */
  private strangers(): string[] {
    const known = [...this.main.querySelectorAll<HTMLElement>(".mounted:not(.elsewhere)")].map((place) => KEYS.get(place.dataset["widget"] ?? ""));
    return Object.entries(this.route.parameters).filter(([key]) => !known.some((keys) => keys?.test(key))).map((pair) => pair.join("="));
  }

  /** The chapters that drawings stand for, as text and tables beside them. */
  private offerText(): void {
    const { classList } = this.document.body;
    if (classList.contains("dashboard")) return; // there the tables stand beside the drawings
    const isText = classList.contains("as-text");
    const turn = (): void => {
      classList.toggle("as-text");
      this.offerText();
    };
    render(
      <button type="button" aria-pressed={isText} onClick={turn}>{t("Also as text, what drawings of this page show")}</button>,
      this.asText,
    );
  }

  private focusHeading(): void {
    scrollTo(0, 0);
    const heading = this.heading.hidden ? this.main.querySelector<HTMLElement>("h1:not(.page-title)") : this.heading;
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
  }

  private showHelp(open: boolean): void {
    this.helping = open;
    render(<Help open={open} onClose={() => this.showHelp(false)} />, this.help);
  }
}

/** Bring an element into view, with what hides it opened, and the focus on it. */
function reveal(element: HTMLElement): void {
  for (let above = element.parentElement; above !== null; above = above.parentElement) {
    if (above instanceof HTMLDetailsElement) above.open = true;
    above.classList.remove("unwanted"); // by a filter
  }
  if (!element.hasAttribute("tabindex")) element.setAttribute("tabindex", "-1");
  element.focus({ preventScroll: true });
  const seen = element.closest<HTMLElement>("article") ?? element;
  seen.scrollIntoView();
  settle(seen);
}

/** Keep an element where it was brought, while what stands above it is still being drawn and the reader does nothing. */
function settle(element: HTMLElement): void {
  const observer = new ResizeObserver(() => (noticeShown() ?? element.querySelector(".asked") ?? element).scrollIntoView());
  const stop = (): void => observer.disconnect();
  for (const parent of [element.closest("main"), document.body]) if (parent !== null) observer.observe(parent);
  for (const kind of ["wheel", "pointerdown", "keydown", "hashchange"]) addEventListener(kind, stop, { once: true });
  setTimeout(stop, 1500);
}

/** Bring a link of the strip of pages into its view, without moving the page. */
function centre(link: HTMLElement): void {
  const strip = link.closest<HTMLElement>("nav.pages");
  if (strip !== null) strip.scrollLeft = link.offsetLeft - (strip.clientWidth - link.offsetWidth) / 2;
}

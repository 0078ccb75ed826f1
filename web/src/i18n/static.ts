/**
 * The static part in the reader's language: headings, column titles, labels and explanations, each looked up as a whole,
 * and what Pyrometer found out, where the page holds that sentence in both languages.
 */
import { type Language, spoken, translated } from "./language";

/** What holds names and findings, or is drawn by the script, which translates for itself. */
const LEFT_ALONE =
  "script, style, code, pre, kbd, td:not(.words), dd, tbody th:not([scope=row]), h1:not(.words, .failed), h3:not(.words), [data-widget], .controls, .help, .page-title, .masthead .verb, " +
  ".bound, .subtitle:not(.words), #link-notice, .said, .do, .name a, .finding p:not(.proofs, .note), .legend strong, .legend span, .explained p, svg :not(tspan, .label, .segment, .segment > title)";

/** What is nothing but code, or is drawn by the script. */
const NO_WORDS = "script, style, code, pre, kbd, .name a, [data-widget], .controls, .help, .page-title";

/** Headings of columns that hold names out of the program, which may be the same as words of the dictionary. */
const NAMES = new Set("operator,kernel,module,function,collective,group,node,call,file,setting,variant,allocated at,where,most often,kernels,operators,line,source,target,function,id,value,a,b".split(","));
const named = new WeakSet<Element>();
const seen = new WeakSet<Element>();

const ATTRIBUTES = ["aria-label", "title", "alt", "placeholder"] as const;
const originals = new WeakMap<Node, string>();

/** Put the static words of an element into a language; what is known in English only stays so. */
export function translateStatic(root: Element, language: Language): void {
  for (const element of root.querySelectorAll<HTMLElement>(":has(> code)")) if (element.closest("[data-widget]") === null) translateMixed(element, language);
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
    if (node instanceof Element) return node.matches(NO_WORDS) || holdsName(node) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;
    return /\p{L}/u.test(node.nodeValue ?? "") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT;
  });
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const leftAlone = (node instanceof Element ? node : node.parentElement)?.closest(LEFT_ALONE) !== null;
    if (!(node instanceof Element)) translateNode(node, language, leftAlone);
    else if (!leftAlone) for (const name of ATTRIBUTES) translateNode(node.getAttributeNode(name), language, false);
  }
}

const mixed = new WeakMap<Element, readonly ChildNode[]>();

/** A sentence with code in it is looked up as one, with the code in backticks. */
function translateMixed(element: HTMLElement, language: Language): void {
  const english = mixed.get(element) ?? [...element.childNodes];
  if (!english.every((node) => node instanceof Text || (node instanceof HTMLElement && node.localName === "code"))) return;
  const sentence = english.map((node) => (node instanceof Text ? (node.nodeValue ?? "") : `\`${node.textContent ?? ""}\``)).join("").replace(/\s+/g, " ").trim();
  const said = spoken(sentence, language);
  if (said === undefined && !mixed.has(element)) return;
  mixed.set(element, english);
  element.replaceChildren(...(said === undefined ? english : parted(said)));
}

function parted(said: string): Node[] {
  return said.split("`").map((part, i) => {
    if (i % 2 === 0) return document.createTextNode(part);
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
}

/** Whether this is a cell of a column of names; tables are met before their headings are translated. */
function holdsName(element: Element): boolean {
  if (element instanceof HTMLTableElement && !seen.has(element)) {
    seen.add(element);
    for (const [i, heading] of [...(element.tHead?.rows[0]?.cells ?? [])].entries())
      if (NAMES.has(heading.textContent?.trim() ?? "")) for (const body of element.tBodies) for (const { cells } of body.rows) if (cells[i] !== undefined) named.add(cells[i]);
  }
  return named.has(element);
}

function translateNode(node: Node | null, language: Language, onlySentences: boolean): void {
  if (node === null) return;
  const english = originals.get(node) ?? node.nodeValue ?? "";
  const text = english.trim();
  const sentence = spoken(text, language);
  const said = sentence !== undefined ? english.replace(text, () => sentence) : onlySentences ? english : inLanguage(english, language);
  if (said === node.nodeValue) return;
  originals.set(node, english);
  node.nodeValue = said;
}

/** Figures with their units, for which one place stands in a key of the dictionary. */
const FIGURE = /\d[\d,.]*(?: (?:ns|µs|ms|s|min|h|B|[KMGT]iB|%)(?![a-z]))?/g;

/** One part of a list: a name with its figure, or a figure alone. */
const LISTED = new RegExp(`^(?:(.*?) )?(${FIGURE.source})(,?)$`);

/** A text with its surrounding space, also with its figures; sentence by sentence where only each of them is known. */
export function inLanguage(english: string, language: Language): string {
  const text = english.trim();
  const whole = known(text, language) ?? sentences(text.split(/(?<=[.:;?,])\s+/), language);
  return whole === undefined ? english : english.replace(text, () => whole);
}

/** As the dictionary has it, or has it with places for the first number or for all figures. */
function known(text: string, language: Language): string | undefined {
  const whole = translated(text, language);
  if (whole !== undefined) return whole;
  for (const figures of [text.match(/\d[\d,]*/)?.slice(0, 1) ?? [], text.match(FIGURE) ?? []]) {
    const key = figures.reduce((rest, figure) => rest.replace(figure, "{n}"), text);
    const said = figures.length === 0 ? undefined : translated(key, language);
    if (said !== undefined) return figures.reduce((rest, figure) => rest.replace("{n}", () => figure), said);
  }
  return undefined;
}

/** `compute 30 %,`: the name as the dictionary has it, the figure as it is. */
function listed(part: string, language: Language): string | undefined {
  const [, name = "", figure = "", comma = ""] = LISTED.exec(part) ?? [];
  const said = name === "" ? "" : translated(name, language);
  return figure === "" || said === undefined ? undefined : `${said} ${figure}`.trim() + (comma && "，");
}

/** The longest parts that are known, one after the other; nothing when one is not. */
function sentences(parts: readonly string[], language: Language): string | undefined {
  const said: string[] = [];
  for (let first = 0; first < parts.length; ) {
    let end = parts.length;
    let found: string | undefined;
    for (; end > first; end--) if ((found = known(parts.slice(first, end).join(" "), language)) !== undefined) break;
    if (found === undefined) {
      found = listed(parts[first] ?? "", language);
      end = first + 1;
    }
    if (found === undefined) return undefined;
    said.push(found);
    first = end;
  }
  return said.join(language === "zh" ? "" : " ");
}

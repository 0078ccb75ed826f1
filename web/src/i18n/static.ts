/**
 * The words of the static part in the reader's language: headings, column titles, labels and explanations, each looked
 * up as a whole. Figures and what Pyrometer found out stay as they were written.
 */
import { type Language, translated } from "./language";

/** What holds names and findings, or is drawn by the script, which translates for itself. */
const LEFT_ALONE =
  "script, style, code, pre, kbd, td:not(.words), dd, tbody th:not([scope=row]), h1:not(.words, .failed), h3:not(.words), [data-widget], .controls, .help, .page-title, .masthead .verb, " +
  ".bound, .subtitle:not(.words), #link-notice, .said, .do, .name a, .finding p:not(.proofs, .note), .legend strong, .legend span, .explained p, svg :not(tspan, .label, .segment, .segment > title)";

/** Headings of columns that hold names out of the program, which may be the same as words of the dictionary. */
const NAMES = new Set("operator,kernel,module,function,collective,group,node,call,file,setting,variant,allocated at,where,most often,kernels,operators,line,source,target,function,id,value,a,b".split(","));
const named = new WeakSet<Element>();
const seen = new WeakSet<Element>();

const ATTRIBUTES = ["aria-label", "title", "alt", "placeholder"] as const;
const originals = new WeakMap<Node, string>();

/** Put the static words of an element into a language; what is not in the dictionary stays English. */
export function translateStatic(root: Element, language: Language): void {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
    if (node instanceof Element) return node.matches(LEFT_ALONE) || holdsName(node) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;
    return /\p{L}/u.test(node.nodeValue ?? "") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT;
  });
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node instanceof Element) for (const name of ATTRIBUTES) translateNode(node.getAttributeNode(name), language);
    else translateNode(node, language);
  }
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

function translateNode(node: Node | null, language: Language): void {
  if (node === null) return;
  const english = originals.get(node) ?? node.nodeValue ?? "";
  const said = inLanguage(english, language);
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

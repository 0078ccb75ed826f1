/**
 * The words of the static part in the reader's language: headings, column titles, labels and explanations, each looked
 * up as a whole. Figures and what Pyrometer found out stay as they were written.
 */
import { type Language, translated } from "./language";

/** What holds names and findings, or is drawn by the script, which translates for itself. */
const LEFT_ALONE =
  "script, style, code, pre, kbd, td, dd, tbody th, h1, h3, [data-widget], .controls, .help, .page-title, .masthead .verb, " +
  ".bound, .subtitle, .caveat, .said, .do, .name, .proof, .finding p:not(.proofs), .legend, .explained p, svg";

const ATTRIBUTES = ["aria-label", "title", "alt"] as const;
const originals = new WeakMap<Node, string>();

/** Put the static words of an element into a language; what is not in the dictionary stays English. */
export function translateStatic(root: Element, language: Language): void {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
    if (node instanceof Element) return node.matches(LEFT_ALONE) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;
    return /\p{L}/u.test(node.nodeValue ?? "") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT;
  });
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node instanceof Element) for (const name of ATTRIBUTES) translateNode(node.getAttributeNode(name), language);
    else translateNode(node, language);
  }
}

function translateNode(node: Node | null, language: Language): void {
  if (node === null) return;
  const english = originals.get(node) ?? node.nodeValue ?? "";
  const said = inLanguage(english, language);
  if (said === node.nodeValue) return;
  originals.set(node, english);
  node.nodeValue = said;
}

/** A text with its surrounding space; sentence by sentence where the whole is unknown but each of them is. */
export function inLanguage(english: string, language: Language): string {
  const text = english.trim();
  const whole = translated(text, language);
  if (whole !== undefined) return english.replace(text, () => whole);
  const parts = text.split(/(?<=[.:;?])\s+/);
  const said = parts.map((part) => translated(part, language));
  if (parts.length < 2 || said.includes(undefined)) return english;
  return english.replace(text, () => said.join(language === "zh" ? "" : " "));
}

/** Names as they fit a box, and kinds in words. */
import { named } from "../../data/names";
import { t } from "../../i18n/language";
import { isModule } from "./hiding";
import { at, kindOf, nameOf, type Tree } from "./tree";

const FUNCTION = /^(.*)\((\d+)\): (.*)$/s;

/** Of a Python function its name first, then file and line: `forward  vit.py:59`. */
export function label(name: string): string {
  const found = FUNCTION.exec(name);
  if (found !== null) return `${named(found[3] ?? "")}  ${found[1]?.split("/").at(-1)}:${found[2]}`;
  return named(name.replace(/^(nn\.Module: |module:|phase:)/, ""));
}

const KINDS: Readonly<Record<string, string>> = {
  trace: "whole recording",
  thread: "thread",
  python_function: "Python function",
  user_annotation: "annotation",
  cpu_op: "operator",
  runtime: "runtime call",
  driver: "driver call",
  kernel: "kernel",
  memcpy: "copy",
  memset: "fill",
  other: "other",
};

/** What a node is, in words. */
export function kindText(kind: string, name: string): string {
  return t(isModule(kind, name) ? "module" : (KINDS[kind] ?? kind));
}

const SLOTS: Readonly<Record<string, number>> = {
  thread: 5,
  trace: 5,
  python_function: 9,
  user_annotation: 11,
  cpu_op: 4,
  runtime: 8,
  driver: 8,
  kernel: 2,
  memcpy: 1,
  memset: 7,
};

const MODULE_SLOT = 10;

/** Number of the colour of a node: as its block says, else that of its kind as in the static drawing, but modules have one of their own. */
export function slot(tree: Tree, node: number): number {
  const [kind, name] = [kindOf(tree, node), nameOf(tree, node)];
  if (tree.slots !== null) return tree.slots[at(tree.kind, node)] ?? 9;
  return isModule(kind, name) ? MODULE_SLOT : (SLOTS[kind] ?? 5);
}

/** A text cut to a width, where `measure` gives its width; empty when not even two letters fit. */
export function cutTo(text: string, width: number, measure: (text: string) => number): string {
  const whole = measure(text);
  if (whole <= width) return text;
  // Letters differ in width: the first guess may be a few too long.
  for (let length = Math.floor((text.length * width) / whole); length >= 2; length--) {
    const cut = `${text.slice(0, length).trimEnd()}…`;
    if (measure(cut) <= width) return cut;
  }
  return "";
}

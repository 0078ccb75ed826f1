/** A node's place as text: the names from the thread to the node, as folded stacks write them. */
import { at, nameOf, sideAt, type Tree, type Weight } from "./tree";

const SEPARATOR = ";";

/** The nodes from below the root to a node; of callers, from the node in the middle outwards. */
export function ancestors(tree: Tree, node: number): number[] {
  const found: number[] = [];
  for (let here = node; here > 0; here = at(tree.parent, here)) found.push(here);
  return found.reverse();
}

/** A node as text; the root is empty. */
export function pathOf(tree: Tree, node: number): string {
  return ancestors(tree, node)
    .map((one) => (at(tree.up, one) === 1 ? "<" : "") + escaped(nameOf(tree, one)))
    .join(SEPARATOR);
}

/** The node of a path, or as near to it as the tree goes. */
export function nodeOf(tree: Tree, path: string): number {
  if (path === "") return 0;
  const steps = path.split(SEPARATOR);
  let [here, done] = [0, 0];
  // One pass does: parents come before their children, and the first child of a name is taken.
  for (let node = 1; node < tree.parent.length && done < steps.length; node++) {
    if (at(tree.parent, node) !== here) continue;
    if ((at(tree.up, node) === 1 ? "<" : "") + escaped(nameOf(tree, node)) === steps[done]) [here, done] = [node, done + 1];
  }
  return here;
}

/** Lines of `a;b;c 123`, one per node with something of its own; what flame graph tools read. */
export function folded(tree: Tree, side: number, weight: Weight): string {
  const own = sideAt(tree, side).own[weight];
  const paths: string[] = [];
  const lines: string[] = [];
  tree.parent.forEach((parent, node) => {
    const above = parent > 0 ? `${paths[parent]}${SEPARATOR}` : "";
    paths.push(above + escaped(nameOf(tree, node)));
    if (at(own, node) > 0 && at(tree.up, node) === 0) lines.push(`${paths[node]} ${at(own, node)}\n`);
  });
  return lines.join("");
}

/** A name as the format can hold it. */
function escaped(name: string): string {
  return name.replaceAll(SEPARATOR, ",").replace(/[\r\n]/g, " ");
}

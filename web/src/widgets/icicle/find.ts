/** Searching the tree: by text, or by a regular expression between slashes. */
import { at, sideAt, type Tree, type Weight } from "./tree";

/** Tells which names match; null for an empty search. */
export type Matcher = ((name: string) => boolean) | null;

/**
 * What a search means: `gemm` finds names that contain it, whatever the case; `/^aten::.*mm$/` is a regular expression.
 *
 * @throws SyntaxError when it is no regular expression.
 */
export function matcher(search: string): Matcher {
  const text = search.trim();
  if (text === "" || text === "/") return null;
  const expression = /^\/(.+)\/(i?)$/s.exec(text);
  if (expression !== null) {
    const pattern = new RegExp(expression[1] ?? "", expression[2]);
    return (name) => pattern.test(name);
  }
  const wanted = text.toLowerCase();
  return (name) => name.toLowerCase().includes(wanted);
}

/** What matches. */
export interface Matches {
  /** 1 for each name that matches, by its number. */
  readonly names: Uint8Array;
  /** Nodes of these names. */
  readonly nodes: number;
  /** What is at or below them; a match below a match is not counted again. */
  readonly weight: number;
}

/** Search a tree, and weigh what was found. */
export function search(tree: Tree, matches: (name: string) => boolean, side: number, weight: Weight): Matches {
  const names = Uint8Array.from(tree.names, (name) => (matches(name) ? 1 : 0));
  const { total } = sideAt(tree, side);
  const within = new Uint8Array(tree.parent.length);
  let [nodes, sum] = [0, 0];
  tree.parent.forEach((parent, node) => {
    const above = parent >= 0 && within[parent] === 1;
    const matched = names[at(tree.name, node)] === 1;
    if (matched) nodes += 1;
    if (matched && !above) sum += at(total[weight], node);
    within[node] = matched || above ? 1 : 0;
  });
  return { names, nodes, weight: sum };
}

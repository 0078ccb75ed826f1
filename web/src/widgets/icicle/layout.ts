/** Where each box lies: callees below callers, siblings beside each other. */
import { at, sideAt, type Tree, type Weight } from "./tree";

/** The largest sibling first, or as the recording lists them. */
export type Order = "size" | "call";

/** Boxes in the unit of the weight. */
export interface Layout {
  /** Width of the whole. */
  readonly whole: number;
  readonly start: Float64Array;
  readonly size: Float64Array;
  /** Row of each node, counted from the top; -1 for the root where it is not drawn. */
  readonly row: Int32Array;
  /** The nodes of each row that are not empty, from left to right. */
  readonly rows: readonly Int32Array[];
  /** The nodes below each, in order, without empty ones. */
  readonly children: readonly (readonly number[])[];
}

/** Lay a tree out by the weight of one side. */
export function layoutOf(tree: Tree, side: number, weight: Weight, order: Order): Layout {
  const size = sideAt(tree, side).total[weight];
  const count = tree.parent.length;
  const children: number[][] = Array.from({ length: count }, () => []);
  const depth = new Int32Array(count);
  let highest = 0;
  for (let node = 1; node < count; node++) {
    const parent = at(tree.parent, node);
    depth[node] = at(depth, parent) + (at(tree.up, node) === 1 ? -1 : 1);
    if (at(size, node) <= 0) continue;
    children[parent]?.push(node);
    highest = Math.min(highest, at(depth, node));
  }
  if (order === "size") for (const list of children) list.sort((a, b) => at(size, b) - at(size, a));
  const above = hasRootRow(tree, children) ? highest : 1;
  const rows: number[][] = [];
  const start = new Float64Array(count);
  const waiting = at(size, 0) > 0 ? [0] : [];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    const row = at(depth, node) - above;
    if (row >= 0) (rows[row] ??= []).push(node);
    const from = [at(start, node), at(start, node)];
    for (const child of children[node] ?? []) {
      const group = at(tree.up, child);
      start[child] = at(from, group);
      from[group] = at(from, group) + at(size, child);
    }
    waiting.push(...(children[node] ?? []).toReversed());
  }
  return {
    whole: at(size, 0),
    start,
    size,
    row: depth.map((value) => Math.max(value - above, -1)),
    rows: rows.map((nodes) => Int32Array.from(nodes)),
    children,
  };
}

/** Whether the root is drawn: where it says something, that is about a name, or when nothing lies below it. */
function hasRootRow(tree: Tree, children: readonly (readonly number[])[]): boolean {
  return tree.kinds[at(tree.kind, 0)] !== "trace" || (children[0]?.length ?? 0) === 0;
}

/** The node at a place, or null. */
export function nodeAtPlace(layout: Layout, row: number, value: number): number | null {
  const nodes = layout.rows[row];
  if (nodes === undefined) return null;
  const node = nodes[firstEndingAfter(layout, nodes, value)];
  return node !== undefined && at(layout.start, node) <= value ? node : null;
}

/** The place in a row of the first box that ends after a value. */
export function firstEndingAfter(layout: Layout, nodes: Int32Array, value: number): number {
  let [low, high] = [0, nodes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const node = at(nodes, middle);
    if (at(layout.start, node) + at(layout.size, node) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Where an arrow key leads from a node; null when nowhere. */
export function neighbour(tree: Tree, layout: Layout, node: number, key: string): number | null {
  const inward = at(tree.up, node) === 1 ? "ArrowDown" : "ArrowUp";
  if (key === inward && node !== 0) {
    const parent = at(tree.parent, node);
    return parent >= 0 && at(layout.row, parent) >= 0 ? parent : null;
  }
  if (key === "ArrowUp" || key === "ArrowDown") {
    const group = key === "ArrowUp" ? 1 : 0;
    const below = (layout.children[node] ?? []).filter((child) => at(tree.up, child) === group);
    return largest(layout, below);
  }
  const row = layout.rows[at(layout.row, node)];
  const beside = row?.[row.indexOf(node) + (key === "ArrowLeft" ? -1 : 1)];
  return beside ?? null;
}

function largest(layout: Layout, nodes: readonly number[]): number | null {
  return nodes.reduce<number | null>((best, node) => (best === null || at(layout.size, node) > at(layout.size, best) ? node : best), null);
}

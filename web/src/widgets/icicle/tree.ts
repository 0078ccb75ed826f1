/** A merged call tree in columns, with one side or two; every part of the icicle reads this form and no other. */

/** What a box may be as wide as. */
export type Weight = "host" | "device" | "calls";

/** Times are nanoseconds; calls are those at or below a node. */
export const WEIGHTS: readonly Weight[] = ["host", "device", "calls"];

/** A value per node for each weight. */
export type Columns = Readonly<Record<Weight, Float64Array>>;

/** What one recording took, as recorded; shown divided by `divideBy`. */
export interface Side {
  readonly label: string;
  readonly divideBy: number;
  /** Calls of the node itself. */
  readonly calls: Float64Array;
  /** What is the node's own. */
  readonly own: Columns;
  /** Its own and that of all below it. */
  readonly total: Columns;
}

/** The tree. Node 0 is the root, and a parent comes before its children. */
export interface Tree {
  readonly names: readonly string[];
  readonly kinds: readonly string[];
  readonly parent: Int32Array;
  readonly name: Int32Array;
  readonly kind: Int32Array;
  /** 1 where the node is a caller of its parent instead of a callee, and is drawn above it. */
  readonly up: Uint8Array;
  /** One, or before and after. */
  readonly sides: readonly Side[];
  /** Colour of each kind, where the block tells; it is then no tree of calls, but of a compiler's steps. */
  readonly slots: readonly number[] | null;
  /** The one among these that phases share which have none of their own. */
  readonly rest?: number | undefined;
}

/** Columns of a block that holds one tree: `TraceView.calls`. */
export interface CallColumns {
  readonly parent: readonly number[];
  readonly name: readonly number[];
  readonly kind: readonly number[];
  readonly calls: readonly number[];
  readonly self_ns: readonly number[];
  readonly device_self_ns: readonly number[];
}

/** The parts of a block `trace/…` that are drawn here. */
export interface TraceBlock {
  readonly path: string;
  readonly names: readonly string[];
  readonly kinds: readonly string[];
  readonly calls: CallColumns;
  /** Of a block `phases/…` only. */
  readonly slots?: readonly number[];
  readonly rest?: number;
  readonly notice?: string | null;
}

/** Columns of one side of a block `difference/…`. */
export interface SideColumns {
  readonly label: string;
  readonly divide_by: number;
  readonly calls: readonly number[];
  readonly self_ns: readonly number[];
  readonly device_self_ns: readonly number[];
}

/** A block `difference/…`. */
export interface DifferenceBlock {
  readonly names: readonly string[];
  readonly kinds: readonly string[];
  readonly parent: readonly number[];
  readonly name: readonly number[];
  readonly kind: readonly number[];
  readonly before: SideColumns;
  readonly after: SideColumns;
  readonly notice: string;
}

/** What boxes are as wide as at first: device time where there is any; of two sides, the time that changed more. */
export function firstWeight(tree: Tree, weights: readonly Weight[]): Weight {
  if (!weights.includes("device")) return "host";
  return tree.sides.length > 1 && changed(tree, "host") > changed(tree, "device") ? "host" : "device";
}

function changed(tree: Tree, weight: Weight): number {
  const [before = 0, after = 0] = tree.sides.map(({ total, divideBy }) => at(total[weight], 0) / divideBy);
  return Math.abs(after - before);
}

/** The tree of either block; null when it holds no calls. */
export function treeOf(block: TraceBlock | DifferenceBlock): Tree | null {
  const columns = "before" in block ? block : block.calls;
  const parent = Int32Array.from(columns.parent);
  if (parent.length === 0) return null;
  const up = new Uint8Array(parent.length);
  const sides = "before" in block ? [block.before, block.after] : [{ ...block.calls, label: block.path, divide_by: 1 }];
  return {
    names: block.names,
    kinds: block.kinds,
    slots: "before" in block ? null : (block.slots ?? null),
    rest: "before" in block ? undefined : block.rest,
    parent,
    name: Int32Array.from(columns.name),
    kind: Int32Array.from(columns.kind),
    up,
    sides: sides.map((side) => {
      const calls = Float64Array.from(side.calls);
      const own = { host: Float64Array.from(side.self_ns), device: Float64Array.from(side.device_self_ns), calls };
      return sideOf(side.label, side.divide_by, calls, own, parent, up);
    }),
  };
}

/** A side with its totals: from the last node to the first, each adds its own to its parent. */
export function sideOf(
  label: string,
  divideBy: number,
  calls: Float64Array,
  own: Columns,
  parent: Int32Array,
  up: Uint8Array,
): Side {
  const sums = (values: Float64Array): Float64Array => {
    const total = values.slice();
    for (let i = parent.length - 1; i > 0; i--) {
      const above = at(parent, i);
      const isCaller = up[i] === 1 && up[above] === 0; // what it called, the node below has of itself
      if (!isCaller) total[above] = at(total, above) + at(total, i);
    }
    return total;
  };
  const total = { host: sums(own.host), device: sums(own.device), calls: sums(own.calls) };
  return { label, divideBy, calls, own, total };
}

/** The value at a place that is known to exist. */
export function at(values: { readonly [i: number]: number | undefined }, i: number): number {
  return values[i] ?? 0;
}

/** A node's name. */
export function nameOf(tree: Tree, node: number): string {
  return tree.names[at(tree.name, node)] ?? "";
}

/** A node's kind. */
export function kindOf(tree: Tree, node: number): string {
  return tree.kinds[at(tree.kind, node)] ?? "";
}

/** The side of a number, counted from the first. */
export function sideAt(tree: Tree, index: number): Side {
  const side = tree.sides[index] ?? tree.sides[0];
  if (side === undefined) throw new Error("a tree without sides");
  return side;
}

/** The side that is looked at when none is chosen: of two, the later. */
export function latest(tree: Tree): number {
  return tree.sides.length - 1;
}

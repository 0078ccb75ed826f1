/** Growing one tree from another: by leaving nodes out, or by turning it about a name. Sums stay exact. */
import { at, type Columns, kindOf, nameOf, type Side, sideOf, type Tree, type Weight, WEIGHTS } from "./tree";

/** A tree that grows node by node: nodes of one name and kind under one parent are one. */
class Growing {
  private readonly known = new Map<number, number>();
  private readonly parent: number[] = [];
  private readonly name: number[] = [];
  private readonly kind: number[] = [];
  private readonly up: number[] = [];
  private readonly sums: { calls: number[]; own: Record<Weight, number[]> }[];

  constructor(private readonly source: Tree) {
    this.sums = source.sides.map(() => ({ calls: [], own: { host: [], device: [], calls: [] } }));
  }

  /** The child that stands for a node of the source; made when there is none, or none may be shared. */
  child(parent: number, node: number, { up = 0, shared = true } = {}): number {
    const { names, kinds, name, kind } = this.source;
    const label = (at(name, node) * kinds.length + at(kind, node)) * 2 + up;
    const key = (parent + 1) * names.length * kinds.length * 2 + label;
    const found = shared ? this.known.get(key) : undefined;
    if (found !== undefined) return found;
    const made = this.parent.push(parent) - 1;
    this.name.push(at(name, node));
    this.kind.push(at(kind, node));
    this.up.push(up);
    for (const { calls, own } of this.sums) {
      calls.push(0);
      for (const weight of WEIGHTS) own[weight].push(0);
    }
    this.known.set(key, made);
    return made;
  }

  /** The first node; made for a node of the source when there is none. */
  root(node: number): number {
    return this.parent.length > 0 ? 0 : this.child(-1, node);
  }

  /** Add to a node's own. */
  add(node: number, side: number, weight: Weight, value: number): void {
    const column = this.sums[side]?.own[weight];
    if (column !== undefined) column[node] = at(column, node) + value;
  }

  /** Add to a node's calls. */
  addCalls(node: number, side: number, value: number): void {
    const column = this.sums[side]?.calls;
    if (column !== undefined) column[node] = at(column, node) + value;
  }

  tree(): Tree {
    const parent = Int32Array.from(this.parent);
    const up = Uint8Array.from(this.up);
    const sides = this.source.sides.map(({ label, divideBy }, i): Side => {
      const sums = this.sums[i];
      const column = (weight: Weight): Float64Array => Float64Array.from(sums?.own[weight] ?? []);
      const own: Columns = { host: column("host"), device: column("device"), calls: column("calls") };
      return sideOf(label, divideBy, Float64Array.from(sums?.calls ?? []), own, parent, up);
    });
    const { names, kinds, slots, rest } = this.source;
    return { names, kinds, slots, rest, parent, name: Int32Array.from(this.name), kind: Int32Array.from(this.kind), up, sides };
  }
}

/**
 * The tree without some nodes: what is below them hangs on the nearest node that is kept, and their time is its own. Their
 * calls are left out, since they are not its calls. The root and the threads are always kept.
 */
export function without(tree: Tree, isHidden: (node: number) => boolean): Tree {
  const growing = new Growing(tree);
  const place = new Int32Array(tree.parent.length);
  tree.parent.forEach((parent, node) => {
    const isThread = kindOf(tree, node) === "thread";
    const hidden = node > 0 && !isThread && isHidden(node);
    const above = parent < 0 ? -1 : at(place, parent);
    const here = hidden ? above : growing.child(above, node, { shared: !isThread });
    place[node] = here;
    tree.sides.forEach(({ calls, own }, side) => {
      growing.add(here, side, "host", at(own.host, node));
      growing.add(here, side, "device", at(own.device, node));
      if (hidden) return;
      growing.add(here, side, "calls", at(own.calls, node));
      growing.addCalls(here, side, at(calls, node));
    });
  });
  return growing.tree();
}

/**
 * The tree about a name: below it all that it calls, above it all that call it, each merged by path. Where the name calls
 * itself, the outermost call counts, so that no time is counted twice. Null when no node has the name.
 */
export function about(tree: Tree, name: string): Tree | null {
  const growing = new Growing(tree);
  const place = new Int32Array(tree.parent.length).fill(-1);
  tree.parent.forEach((parent, node) => {
    const above = parent < 0 ? -1 : at(place, parent);
    const outermost = above < 0 && nameOf(tree, node) === name;
    if (above < 0 && !outermost) return;
    const here = outermost ? growing.root(node) : growing.child(above, node);
    place[node] = here;
    tree.sides.forEach(({ calls, own }, side) => {
      for (const weight of WEIGHTS) growing.add(here, side, weight, at(own[weight], node));
      growing.addCalls(here, side, at(calls, node));
    });
    if (outermost) addCallers(growing, tree, node);
  });
  const grown = growing.tree();
  return grown.parent.length > 0 ? grown : null;
}

/** The callers of one call, from the nearest to the outermost; what the call took is the outermost one's own. */
function addCallers(growing: Growing, tree: Tree, node: number): void {
  let here = 0;
  for (let caller = at(tree.parent, node); caller > 0; caller = at(tree.parent, caller)) {
    here = growing.child(here, caller, { up: 1 });
    tree.sides.forEach(({ calls }, side) => growing.addCalls(here, side, at(calls, node)));
  }
  if (here === 0) return;
  tree.sides.forEach(({ total }, side) => {
    for (const weight of WEIGHTS) growing.add(here, side, weight, at(total[weight], node));
  });
}

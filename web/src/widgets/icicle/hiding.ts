/** What may be left out of the drawing: kinds of nodes, and callers that only pass through. */
import { at, kindOf, nameOf, type Tree, type Weight } from "./tree";

/** What can be hidden. */
export type Hidden = "frames" | "modules" | "runtime" | "chains";

/** All that can be hidden, in the order in which it is offered. */
export const HIDDEN: readonly Hidden[] = ["chains", "frames", "modules", "runtime"];

const CHAIN = 0.995;

/** What torch calls a module's `forward` through, and that function below its module: rows that repeat the module's. */
const WRAPPER = /torch\/nn\/modules\/module\.py\(\d+\): _(wrapped_)?call_impl$/;
const FORWARD = /\): forward$/;

/** Whether a node is a call of a module, by the profiler's Python tracer or by our own capture. */
export function isModule(kind: string, name: string): boolean {
  return (
    (kind === "python_function" && name.startsWith("nn.Module: ")) ||
    (kind === "user_annotation" && name.startsWith("module:"))
  );
}

/** Tells which nodes are hidden; a caller passes through when one callee takes nearly all of it, on every side. */
export function hider(tree: Tree, hidden: readonly Hidden[], weight: Weight): (node: number) => boolean {
  const passes = hidden.includes("chains") ? passing(tree, weight) : null;
  return (node) => {
    if (passes?.[node] === 1) return true;
    const kind = kindOf(tree, node);
    if (isModule(kind, nameOf(tree, node))) return hidden.includes("modules");
    if (kind === "python_function") return hidden.includes("frames");
    return (kind === "runtime" || kind === "driver") && hidden.includes("runtime");
  };
}

/** What the tree holds that could be hidden. */
export function hideable(tree: Tree): Hidden[] {
  const held = new Set<Hidden>();
  for (let node = 0; node < tree.parent.length && held.size < HIDDEN.length; node++) {
    const kind = kindOf(tree, node);
    if (isModule(kind, nameOf(tree, node))) held.add("modules");
    else if (kind === "python_function") held.add("frames").add("chains");
    else if (kind === "runtime" || kind === "driver") held.add("runtime");
  }
  return HIDDEN.filter((one) => held.has(one));
}

/** 1 for each node that passes through. Only Python functions do: a module or an operator is worth seeing. */
function passing(tree: Tree, weight: Weight): Uint8Array {
  const passes = new Uint8Array(tree.parent.length);
  tree.parent.forEach((parent, node) => {
    if (parent < 0) return;
    const kind = kindOf(tree, parent);
    if (kind !== "python_function" || isModule(kind, nameOf(tree, parent))) return;
    const shares = tree.sides.map(({ total }) => [at(total[weight], parent), at(total[weight], node)] as const);
    if (FORWARD.test(nameOf(tree, parent)) && ofModule(tree, parent)) passes[parent] = 1;
    const most = shares.every(([whole, part]) => part >= CHAIN * whole) && shares.some(([whole]) => whole > 0);
    if (most || WRAPPER.test(nameOf(tree, parent))) passes[parent] = 1;
  });
  return passes;
}

/** Whether what calls a node, past torch's own frames, is a call of a module. */
function ofModule(tree: Tree, node: number): boolean {
  let above = at(tree.parent, node);
  while (above >= 0 && WRAPPER.test(nameOf(tree, above))) above = at(tree.parent, above);
  return above >= 0 && isModule(kindOf(tree, above), nameOf(tree, above));
}

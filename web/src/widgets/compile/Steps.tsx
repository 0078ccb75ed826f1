/** Compile time nested: the call tree's drawing, of the compiler's own steps. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { noteSome } from "../../shell/router";
import { Explorer } from "../icicle/Explorer";
import { FIRST_LOOK, type Look } from "../icicle/look";
import { type TraceBlock, type Tree, treeOf } from "../icicle/tree";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";

export function Steps({ blocks, place, route }: WidgetProps): JSX.Element {
  const node = route.parameters["step"] ?? "";
  const [look, setLook] = useState<Look>({ ...FIRST_LOOK, node });
  useEffect(() => setLook((before) => ({ ...before, node })), [route]);
  const change = (wanted: Partial<Look>): void => {
    setLook({ ...look, ...wanted });
    if (wanted.node !== undefined) noteSome("compile", { step: wanted.node || null });
  };
  return (
    <Loaded<TraceBlock> blocks={blocks} name={place["block"] ?? "phases"}>
      {(block) => {
        const tree = treeOnce(block);
        return tree === null ? <></> : <Explorer tree={tree} notice={block.notice ?? ""} ranks={[]} look={look} onLook={change} />;
      }}
    </Loaded>
  );
}

const trees = new WeakMap<object, Tree | null>();

function treeOnce(block: TraceBlock): Tree | null {
  if (!trees.has(block)) trees.set(block, treeOf(block));
  return trees.get(block) ?? null;
}

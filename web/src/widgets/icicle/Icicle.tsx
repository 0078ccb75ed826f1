/** The call tree of a recording, or of two laid over each other: who called what, and what it took. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import { Explorer } from "./Explorer";
import { useLook } from "./address";
import { type DifferenceBlock, type TraceBlock, treeOf } from "./tree";

/** One drawing stands for all blocks of its kind: the place of the first holds it, the others stay empty. */
export function Icicle({ blocks, place, route }: WidgetProps): JSX.Element | null {
  const own = place["block"] ?? "";
  const page = place["page"] ?? "flame";
  const area = own.slice(0, own.indexOf("/") + 1);
  const names = blocks.names(area);
  const [look, setLook] = useLook(page, route);
  if (names[0] !== own) return null;
  const name = names.includes(area + look.rank) ? area + look.rank : own;
  return (
    <Loaded<TraceBlock | DifferenceBlock> key={name} blocks={blocks} name={name}>
      {(block) => {
        const tree = treeOnce(block);
        if (tree === null) return <p class="note">{t("This recording holds no calls.")}</p>;
        const ranks = names.map((one) => one.slice(area.length));
        return <Explorer tree={tree} notice={block.notice ?? ""} ranks={ranks} look={look} onLook={setLook} />;
      }}
    </Loaded>
  );
}

const trees = new WeakMap<object, ReturnType<typeof treeOf>>();

/** The tree of a block, made once. */
function treeOnce(block: TraceBlock | DifferenceBlock): ReturnType<typeof treeOf> {
  if (!trees.has(block)) trees.set(block, treeOf(block));
  return trees.get(block) ?? null;
}

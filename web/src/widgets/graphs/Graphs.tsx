/** The graphs of a compilation: one, or two beside each other whose selections follow each other. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { t } from "../../i18n/language";
import { leaveOut } from "../../shell/notice";
import { note, parseRoute } from "../../shell/router";
import { Figure } from "../Figure";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import { type Chosen, chosenFrom, nodeOf, parametersOf, partnerOf, type Shown, unitOf, wrongIn } from "./address";
import { Choice } from "./Choice";
import type { GraphContent, GraphIndex } from "./content";
import { OVERLAYS, type Overlay } from "./overlay";
import { Pane } from "./Pane";
import { pathTo, standsOf } from "./scene";
import { counterparts } from "./search";

export function Graphs({ blocks, place, route }: WidgetProps): JSX.Element {
  return (
    <Loaded<GraphIndex> blocks={blocks} name={place["block"] ?? "graphs"}>
      {(index) => <Explorer blocks={blocks} index={index} parameters={route.parameters} />}
    </Loaded>
  );
}

interface ExplorerProps {
  readonly blocks: WidgetProps["blocks"];
  readonly index: GraphIndex;
  readonly parameters: Readonly<Record<string, string>>;
}

const OVERLAY_TITLES: Readonly<Record<Overlay, string>> = {
  kind: "kind of operation",
  dtype: "dtype",
  bytes: "bytes handed on",
  group: "fused group",
  marks: "breaks and findings",
};

function Explorer({ blocks, index, parameters }: ExplorerProps): JSX.Element {
  const asked = useMemo(() => chosenFrom(parameters, index), [parameters, index]);
  const [chosen, setChosen] = useState(asked);
  const followed = useRef(asked);
  if (followed.current !== asked) {
    followed.current = asked;
    setChosen(asked);
  }
  useEffect(() => leaveOut(wrongIn(parameters, index)), [parameters]);
  const choose = (next: Chosen): void => {
    setChosen(next);
    note("compile", parametersOf(next, parseRoute(location.hash)?.parameters ?? {}));
  };
  const { left, right, overlay } = chosen;
  const tools = (
    <>
      <label>
        {t("Colour by")}{" "}
        <select value={overlay} onChange={(event) => choose({ ...chosen, overlay: overlayOf(event.currentTarget.value) })}>
          {OVERLAYS.map((one) => (
            <option value={one} key={one}>
              {t(OVERLAY_TITLES[one])}
            </option>
          ))}
        </select>
      </label>
      {index.graphs.length > 1 && (
        <button
          type="button"
          aria-pressed={right !== null}
          onClick={() => choose({ ...chosen, right: right === null ? opened(partnerOf(index, left.number)) : null })}
        >
          {t("Side by side")}
        </button>
      )}
    </>
  );
  return (
    <Figure title="Graphs" tools={tools} how={HOW} change={CHANGE}>
      <Sides blocks={blocks} index={index} chosen={chosen} choose={choose} />
      {index.left_out > 0 && <p class="note">{t("{count} more graphs have no room on this page; the document holds them.", { count: index.left_out })}</p>}
      {index.same.length > 0 && (
        <p class="note">{t("Left out, since nothing changed there: {stages}.", { stages: shortList(index.same) })}</p>
      )}
    </Figure>
  );
}

const HOW =
  "Each box is an operation or, with an edge behind it, several that come from one module or line: double-click or press Enter to open it. Lines carry results downwards; dashed boxes of an opened part stand for the rest of the graph, and lead there. Click to see what a box reads and who reads it; drag to move, + and − or the wheel to zoom, / to search, arrows to follow lines.";
const CHANGE =
  "A ! marks a line at which torch.compile broke the graph, compiled again, or a rule found something. Sizes of results follow from shapes at compile time: open sizes have none.";

interface SidesProps {
  readonly blocks: WidgetProps["blocks"];
  readonly index: GraphIndex;
  readonly chosen: Chosen;
  readonly choose: (chosen: Chosen) => void;
}

function Sides({ blocks, index, chosen, choose }: SidesProps): JSX.Element {
  const { left, right, overlay } = chosen;
  const block = (side: Shown): string => index.graphs[side.number]?.block ?? "";
  if (right === null) {
    return (
      <Loaded<GraphContent> key={block(left)} blocks={blocks} name={block(left)}>
        {(graph) => <Side {...{ graph, index, overlay }} side={left} twins={[]} onSide={(side) => choose({ ...chosen, left: side })} />}
      </Loaded>
    );
  }
  return (
    <div class="graph-sides">
      <Loaded<GraphContent> key={`a${block(left)}`} blocks={blocks} name={block(left)}>
        {(one) => (
          <Loaded<GraphContent> key={block(right)} blocks={blocks} name={block(right)}>
            {(other) => <Pair {...{ one, other, index, chosen, choose }} right={right} />}
          </Loaded>
        )}
      </Loaded>
    </div>
  );
}

interface PairProps extends Omit<SidesProps, "blocks"> {
  readonly one: GraphContent;
  readonly other: GraphContent;
  readonly right: Shown;
}

/** The side on which the reader selected last leads; what stands for it on the other side is marked there. */
function Pair({ one, other, index, chosen, choose, right }: PairProps): JSX.Element {
  const { left, overlay } = chosen;
  const leads = left.node !== "" ? "left" : right.node !== "" ? "right" : "";
  const twins = useMemo(() => {
    if (leads === "left") return counterparts(one, unitOf(one, left.node), other);
    return leads === "right" ? counterparts(other, unitOf(other, right.node), one) : { units: [], by: "" as const };
  }, [leads, one, other, left.node, right.node]);
  const said = { name: "the same name", both: "the same line and module", line: "the same line", module: "the same module", "": "nothing there stands for it" }[twins.by];
  return (
    <>
      <Side
        {...{ index, overlay }}
        graph={one}
        side={left}
        twins={leads === "right" ? twins.units : []}
        onSide={(side) => choose({ ...chosen, left: side, right: side.node === "" ? right : { ...right, node: "" } })}
      />
      <Side
        {...{ index, overlay }}
        graph={other}
        side={right}
        keys={["node2", "open2"]}
        twins={leads === "left" ? twins.units : []}
        onSide={(side) => choose({ ...chosen, right: side, left: side.node === "" ? left : { ...left, node: "" } })}
      />
      {leads !== "" && (
        <p class="note wide" role="status">
          {t("Marked on the other side ({count}), found by: {how}.", { count: twins.units.length, how: t(said) })}
        </p>
      )}
    </>
  );
}

interface SideProps {
  readonly graph: GraphContent;
  readonly index: GraphIndex;
  readonly side: Shown;
  readonly overlay: Overlay;
  readonly twins: readonly number[];
  readonly onSide: (side: Shown) => void;
  /** Names of its parameters in the address. */
  readonly keys?: readonly [string, string];
}

function Side({ graph, index, side, overlay, twins, onSide, keys: [nodeKey, pathKey] = ["node", "open"] }: SideProps): JSX.Element {
  const unit = unitOf(graph, side.node);
  // A link may name a node without the way to it.
  const path = useMemo(() => (side.path.length === 0 && unit >= 0 && side.node !== "" ? impliedPath(graph, unit, side) : side.path), [graph, side]);
  useEffect(() => {
    if (side.node !== "" && unit < 0) leaveOut([`${nodeKey}=${side.node}`]);
    if (standsOf(graph, side.path).length <= side.path.length) leaveOut([`${pathKey}=${side.path.join(".")}`]);
  }, [side]);
  return (
    <Pane
      graph={graph}
      path={path}
      unit={unit}
      overlay={overlay}
      twins={twins}
      onPath={(to, one) => onSide({ ...side, path: to, node: nodeOf(graph, one) })}
      onUnit={(one) => onSide({ ...side, path, node: nodeOf(graph, one) })}
    >
      <Choice index={index} number={side.number} onNumber={(number) => onSide(opened(number))} />
    </Pane>
  );
}

/** A box of several operations stays closed while its first one is selected; any other operation has to be opened to be seen. */
function impliedPath(graph: GraphContent, unit: number, side: Shown): readonly number[] {
  const box = graph.levels[0]?.units.find((units) => units.includes(unit)) ?? [];
  return box[0] === unit ? side.path : pathTo(graph, unit);
}

function opened(number: number): Shown {
  return { number, path: [], node: "" };
}

function overlayOf(value: string): Overlay {
  return OVERLAYS.find((one) => one === value) ?? "kind";
}

function shortList(names: readonly string[]): string {
  return names.length <= 6 ? names.join(", ") : `${names.slice(0, 6).join(", ")} +${names.length - 6}`;
}

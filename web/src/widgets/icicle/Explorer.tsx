/** Puts together what is looked at: hides, turns, lays out and searches the tree, each only when it must be done again. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCount, formatShare } from "../../data/quantity";
import { download } from "../../export/download";
import { saveCanvas } from "../../export/picture";
import { language, t } from "../../i18n/language";
import { inLanguage } from "../../i18n/static";
import { leaveOut } from "../../shell/notice";
import { Figure } from "../Figure";
import { Details } from "./Details";
import { matcher, type Matches, search } from "./find";
import { about, without } from "./grow";
import { hideable, hider } from "./hiding";
import { label } from "./label";
import { layoutOf } from "./layout";
import { Legend } from "./Legend";
import type { Look } from "./look";
import type { Scene } from "./paint";
import { folded, nodeOf, pathOf } from "./path";
import { Stage } from "./Stage";
import { Tools } from "./Tools";
import { at, firstWeight, latest, sideAt, type Tree, type Weight, WEIGHTS } from "./tree";

interface Props {
  readonly tree: Tree;
  readonly notice: string;
  readonly ranks: readonly string[];
  readonly look: Look;
  readonly onLook: (change: Partial<Look>) => void;
}

export function Explorer({ tree, notice, ranks, look, onLook }: Props): JSX.Element {
  const compared = tree.sides.length > 1;
  const side = compared && look.side === "before" ? 0 : latest(tree);
  const weights = useMemo(() => WEIGHTS.filter((one) => weighs(tree, one)), [tree]);
  const weight = weights.find((one) => one === look.weight) ?? firstWeight(tree, weights);
  const hide = look.hide.join(" ");
  const whole = useMemo(() => without(tree, hider(tree, look.hide, weight)), [tree, hide, weight]);
  const turned = useMemo(() => (look.about === "" ? null : about(whole, look.about)), [whole, look.about]);
  const shown = turned ?? whole;
  const layout = useMemo(() => layoutOf(shown, side, weight, look.order), [shown, side, weight, look.order]);
  const selected = useMemo(() => nodeOf(shown, look.node), [shown, look.node]);
  useEffect(() => {
    // Only what the address names: a node that the reader hides afterwards was understood.
    if (pathOf(shown, selected) !== look.node) leaveOut([`${tree.slots === null ? "node" : "step"}=${look.node}`]);
  }, [look.node]);
  const [zoomed, setZoomed] = useZoomed(shown, selected, look.node);
  const finding = useMemo(() => findIn(whole, look.find, side, weight), [whole, look.find, side, weight]);
  const found = finding?.matches?.names ?? null;
  const scene: Scene = useMemo(
    () => ({ tree: shown, whole, layout, weight, found, selected }),
    [shown, whole, layout, weight, found, selected],
  );
  const offered = useMemo(() => hideable(tree), [tree]);
  const canvas = useRef<HTMLCanvasElement | null>(null);
  const field = useRef<HTMLInputElement>(null);

  const zoom = (node: number): void => {
    setZoomed(node);
    onLook({ node: pathOf(shown, node) });
  };
  const file = tree.slots === null ? "call-tree" : "compile-steps";
  const focus = (): void => canvas.current?.focus();
  return (
    <Figure
      {...(compared ? COMPARED : tree.slots === null ? CALLS : STEPS)}
      tools={
        <Tools
          look={look}
          weight={weight}
          weights={weights}
          ranks={ranks}
          compared={compared}
          steps={tree.slots !== null}
          hideable={offered}
          search={field}
          onLook={onLook}
          onFindNext={() => {
            const next = nextFound(scene);
            if (next !== null) zoom(next);
          }}
          onFocus={focus}
          onPicture={() => canvas.current !== null && saveCanvas(canvas.current, `${file}-${weight}`)}
          onFolded={() => download(`${file}-${compared ? `${look.side}-` : ""}${weight}.folded`, folded(shown, side, weight), "text/plain")}
        />
      }
    >
      {turned !== null && (
        <p class="icicle-about">
          {t("Above: what calls {name}. Below: what it calls.", { name: label(look.about) })}{" "}
          <button type="button" onClick={() => onLook({ about: "", node: "" })}>
            {t("Back to the whole tree")}
          </button>
        </p>
      )}
      {finding !== null && <FoundLine finding={finding} tree={whole} side={side} weight={weight} />}
      {layout.whole > 0 ? (
        <Stage
          scene={scene}
          zoomed={zoomed}
          onSelect={(node) => onLook({ node: pathOf(shown, node) })}
          onZoom={zoom}
          onLeave={() => onLook({ about: "", node: "" })}
          onSearch={() => field.current?.focus()}
          onCanvas={(element) => {
            canvas.current = element;
          }}
        />
      ) : (
        <p class="note">{t("Nothing of this was recorded; choose another width.")}</p>
      )}
      <Legend tree={shown} />
      <Details
        tree={shown}
        whole={whole}
        node={selected}
        turned={turned !== null}
        onZoom={zoom}
        onAbout={(name) => onLook({ about: name, node: "" })}
      />
      {notice !== "" && <p class="note">{notice.split("; ").map((one) => inLanguage(one, language())).join("; ")}</p>}
    </Figure>
  );
}

const CALLS = {
  title: "Call tree",
  how: "Each box is a call, merged with all others that were made in the same way; it lies under its caller and is as wide as its share. A gap below a box is its own time. Boxes too narrow to be seen are drawn together in grey.",
  change:
    "Host time is when calls were made, device time is the work that they launched: where the device is busy all the time, narrow boxes of host time matter little, and the other way round.",
};
const COMPARED = {
  title: "Call tree, before and after",
  how: "Both call trees are laid over each other. A box is as wide as on the chosen side; orange and + grew, blue and − shrank, grey stayed. What only the other side has is seen when its width is chosen.",
  change:
    "These are two recordings, one after the other: small boxes change by themselves from run to run. What counts is what the overview says of the whole, and boxes that are wide and changed much.",
};
const STEPS = {
  title: "Inside the compiler",
  how: "Each box is a step of the compiler under its own name in torch, inside the step that it is a part of, and as wide as the time that the program waited for it; the first row are compilations. A gap below a box is its own time. Colours are phases, as in the bars.",
  change:
    "Wide tracing is the program's Python and grows with its operations; wide code generation and compiling become narrow once the caches are warm; a box under cache look-up that happens once per process says nothing of the program.",
};

/** The node that fills the width: the selected one at first and when the address leads elsewhere, then what is chosen. */
function useZoomed(tree: Tree, selected: number, path: string): [number, (node: number) => void] {
  const [chosen, setChosen] = useState<{ readonly tree: Tree; readonly node: number }>({ tree, node: selected });
  useEffect(() => {
    if (chosen.tree !== tree) setChosen({ tree, node: selected });
    else if (path === "" && chosen.node !== 0) setChosen({ tree, node: 0 });
  }, [tree, path]);
  return [chosen.tree === tree ? chosen.node : selected, (node) => setChosen({ tree, node })];
}

interface Finding {
  readonly matches: Matches | null;
  readonly failure: string;
}

function findIn(tree: Tree, text: string, side: number, weight: Weight): Finding | null {
  try {
    const matches = matcher(text);
    return matches === null ? null : { matches: search(tree, matches, side, weight), failure: "" };
  } catch (error) {
    return { matches: null, failure: error instanceof Error ? error.message : String(error) };
  }
}

interface FoundProps {
  readonly finding: Finding;
  readonly tree: Tree;
  readonly side: number;
  readonly weight: Weight;
}

function FoundLine({ finding: { matches, failure }, tree, side, weight }: FoundProps): JSX.Element {
  const whole = at(sideAt(tree, side).total[weight], 0);
  const said =
    matches === null
      ? t("This is no regular expression: {why}", { why: failure })
      : matches.nodes === 0
        ? t("Nothing is called so.")
        : t("Matching boxes: {count}; with all below them they take {share} of the whole.", {
            count: formatCount(matches.nodes),
            share: formatShare(whole > 0 ? matches.weight / whole : 0),
          });
  return (
    <p class="icicle-found" role="status">
      {said}
    </p>
  );
}

/** The largest match, or after a match the next smaller one. */
function nextFound({ tree, layout, found, selected }: Scene): number | null {
  if (found === null) return null;
  const nodes = [...tree.parent.keys()].filter((node) => found[at(tree.name, node)] === 1 && at(layout.size, node) > 0);
  nodes.sort((a, b) => at(layout.size, b) - at(layout.size, a) || a - b);
  return nodes[(nodes.indexOf(selected) + 1) % Math.max(nodes.length, 1)] ?? null;
}

function weighs(tree: Tree, weight: Weight): boolean {
  return tree.sides.some(({ total }) => at(total[weight], 0) > 0);
}

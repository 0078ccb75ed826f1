/** Below the drawing: the way from the whole to the selected node, and the node in figures. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import { type FigureLine, figuresOf } from "./figures";
import { kindText, label } from "./label";
import { ancestors } from "./path";
import { Figures } from "./Tip";
import { named } from "../../data/names";
import { kindOf, nameOf, type Tree } from "./tree";

interface Props {
  readonly tree: Tree;
  /** What shares are of. */
  readonly whole: Tree;
  readonly node: number;
  /** Whether the tree is turned about a name already. */
  readonly turned: boolean;
  readonly onZoom: (node: number) => void;
  readonly onAbout: (name: string) => void;
}

const SHOWN_FIRST = 2;
const SHOWN_LAST = 5;

export function Details({ tree, whole, node, turned, onZoom, onAbout }: Props): JSX.Element {
  const [name, kind] = [nameOf(tree, node), kindOf(tree, node)];
  const lines = figuresOf(tree, node, whole);
  const isCall = kind !== "thread" && kind !== "trace" && !(turned && node === 0);
  return (
    <div class="icicle-details">
      <p class="icicle-selected" role="status">
        <strong class="icicle-name">{kind === "trace" ? t(tree.slots === null ? "Whole recording" : "All compilations") : named(name)}</strong>{" "}
        {kind !== "trace" && <span class="icicle-kind">{kindText(kind, name)}</span>}
        {isCall && (
          <button type="button" onClick={() => onAbout(name)}>
            {t("Callers and callees")}
          </button>
        )}
      </p>
      {tree.sides.length > 1 ? <Figures lines={lines} compared /> : <Line lines={lines} />}
      {node > 0 && <Trail tree={tree} node={node} turned={turned} onZoom={onZoom} />}
    </div>
  );
}

/** The figures of a node side by side. */
function Line({ lines }: { readonly lines: readonly FigureLine[] }): JSX.Element {
  return (
    <dl class="icicle-line">
      {lines.map(({ label: said, values }) => (
        <div key={said}>
          <dt>{said}</dt>
          <dd>{values.join(" ")}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The ancestors of a node, from the whole; of very many the middle is left out. */
export function Trail({ tree, node, turned, onZoom }: Omit<Props, "onAbout" | "whole">): JSX.Element {
  const steps = ancestors(tree, node);
  const cut = steps.length > SHOWN_FIRST + SHOWN_LAST + 1;
  const shown = cut ? [...steps.slice(0, SHOWN_FIRST), null, ...steps.slice(-SHOWN_LAST)] : steps;
  return (
    <nav class="icicle-trail" aria-label={t("Callers of the selected box")}>
      <button type="button" onClick={() => onZoom(0)}>
        {turned ? label(nameOf(tree, 0)) : t("All")}
      </button>
      {shown.map((step) =>
        step === null ? (
          <span key="cut">{t("… {count} more …", { count: steps.length - SHOWN_FIRST - SHOWN_LAST })}</span>
        ) : (
          <button key={step} type="button" title={nameOf(tree, step)} onClick={() => onZoom(step)}>
            {label(nameOf(tree, step))}
          </button>
        ),
      )}
    </nav>
  );
}

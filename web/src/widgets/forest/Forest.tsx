/** Verdicts: each ratio with its interval against the margin, and the blocks that it rests on. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { t } from "../../i18n/language";
import { Chart } from "../charts/Chart";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import { drawBlocks } from "./blocks";
import { drawForest } from "./draw";
import type { Comparison, VerdictView } from "./view";

export function Forest({ blocks, place }: WidgetProps): JSX.Element {
  return (
    <Loaded<VerdictView> blocks={blocks} name={place["block"] ?? "verdict"}>
      {(view) => <Verdicts view={view} />}
    </Loaded>
  );
}

function Verdicts({ view }: { readonly view: VerdictView }): JSX.Element {
  const [chosen, choose] = useState(0);
  const many = view.comparisons.length > 1;
  const one = view.comparisons[chosen];
  return (
    <>
      <Chart
        title="Ratio of step times, candidate over baseline"
        how="The diamond is the ratio, its bar the interval; left of 1 the candidate is faster. The shaded band is the margin: an interval inside it is called the same. Dots are the blocks or fresh processes in which both sides ran. The axis is logarithmic, so that twice and half are equally far from 1."
        change={many ? "Each row is a comparison of its own, in one process; a row that is undecided needs more blocks. A click shows the blocks of a row." : changes(one)}
        label={view.comparisons.map(({ candidate, baseline, sentence }) => `${candidate} / ${baseline}: ${sentence}`).join("; ")}
        name="verdict"
        draw={(width) => drawForest(view, many ? chosen : null, width)}
        {...(many ? { onOpen: (row: number) => choose(rowOf(view, row)) } : {})}
      />
      {one !== undefined && one.blocks.length > 1 && <Blocks one={one} many={many} />}
    </>
  );
}

function Blocks({ one, many }: { readonly one: Comparison; readonly many: boolean }): JSX.Element {
  return (
    <Chart
      title="The paired blocks in time"
      how="Each dot is one paired block, or one fresh process, in which both sides ran in turns; the line is the median of all up to there, the band the margin around 1."
      change="A slope or a jump among the dots means that the effect itself changed while it was measured. Dots on both sides of 1 with a line that still moves need more blocks."
      label={t("{count} ratios in time order, of {candidate} over {baseline}", {
        count: one.blocks.length,
        candidate: one.candidate,
        baseline: one.baseline,
      })}
      name="verdict-blocks"
      across
      draw={(width) => drawBlocks(one, width)}
      {...(many ? { below: <p class="note">{t("Shown: {candidate} against {baseline}.", { candidate: one.candidate, baseline: one.baseline })}</p> } : {})}
    />
  );
}

/** The comparison that a row of the drawing belongs to. */
export function rowOf(view: VerdictView, row: number): number {
  let seen = 0;
  for (const [i, { rows }] of view.comparisons.entries()) {
    seen += rows.length;
    if (row < seen) return i;
  }
  return 0;
}

function changes(one: Comparison | undefined): string {
  if (one?.outcome === "faster" || one?.outcome === "slower") {
    return "An interval that touches 1, or an estimate nearer to 1 than the smallest effect that counts. It holds for this machine and these inputs.";
  }
  if (one?.outcome === "same") return "A narrower margin: the interval would have to fit inside it.";
  return "A narrower interval: more blocks, or a quieter machine.";
}

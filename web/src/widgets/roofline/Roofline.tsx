/** The roofline: what operators reach, under what the machine allows. */
import type { JSX } from "preact";
import { formatNs, formatShare } from "../../data/quantity";
import { t } from "../../i18n/language";
import { go } from "../../shell/router";
import { Chart } from "../charts/Chart";
import { formatRate } from "../charts/scale";
import { Ranks } from "../operators/Ranks";
import type { WidgetProps } from "../widget";
import { drawRoofline } from "./draw";
import { BOUNDS, kindOf, shapeOf } from "./shape";
import type { Ceiling, RooflineView } from "./view";

export function Roofline(props: WidgetProps): JSX.Element {
  return (
    <Ranks<RooflineView> {...props}>
      {(view, rank, chooser) => (
        <Chart
          title="Against the hardware"
          how="Each mark is an operator on inputs of one shape: to the right it does more arithmetic per byte, upwards it does more per second; the larger, the more time it takes. The roof is what the machine allows: its slope the memory's bandwidth, its level parts the arithmetic of each type; where it was measured, half of the timings lie in the grey band. Marks above it found their data in a cache. Both axes are logarithmic. A click goes to the operator in the table."
          change="Bytes are the least that must move: caches make the real traffic smaller and re-reads make it larger, which moves a mark sideways. Marks far below the roof that are called overhead are too small for the machine: there is nothing to gain in their kernels, only in running fewer of them."
          label={t("Roofline of {count} operators of rank {rank}", { count: view.points.length, rank: view.rank })}
          name={`roofline-rank-${view.rank}`}
          tools={chooser}
          draw={(width) => drawRoofline(view, width)}
          onOpen={(at) => go("operators", { find: view.points[at]?.name ?? "", rank, tab: "operators" })}
          below={<Below view={view} />}
        />
      )}
    </Ranks>
  );
}

function Below({ view }: { readonly view: RooflineView }): JSX.Element {
  const kinds = BOUNDS.map((kind) => {
    const points = view.points.filter(({ bound }) => kindOf(bound) === kind);
    return { kind, count: points.length, ns: points.reduce((sum, { time_ns }) => sum + time_ns, 0) };
  });
  const all = [...view.slopes, ...view.ceilings];
  return (
    <>
      <ul class="legend">
        {kinds.map(({ kind, count, ns }) =>
          count === 0 ? null : (
            <li key={kind}>
              <svg class="swatch drawing" width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">
                <path class={`reached ${kind}`} d={shapeOf(kind, 0, 0, 6)} />
              </svg>
              {t(kind === "unknown" ? "limit unknown" : `bound by ${kind}`)} <strong>{count}</strong> <span>{formatNs(ns)}</span>
            </li>
          ),
        )}
      </ul>
      {all.length > 0 && <Ceilings all={all} slopes={view.slopes.length} />}
      <p class="note">
        {all.length === 0 && t("No peaks of this machine are known: the marks have no roof.")}{" "}
        {view.covered_share !== null && t("Formulas cover {share} of the time.", { share: formatShare(view.covered_share) })}{" "}
        {view.omitted > 0 && t("Listed operators without arithmetic or without a formula, which have no mark: {count}.", { count: view.omitted })}
      </p>
    </>
  );
}

/** Who says what the machine allows, and how sharp that is. */
function Ceilings({ all, slopes }: { readonly all: readonly Ceiling[]; readonly slopes: number }): JSX.Element {
  return (
    <div class="scroll" role="region" aria-label={t("The roof")} tabIndex={0}>
      <table class="roof-table">
        <caption>{t("The roof")}</caption>
        <thead>
          <tr>
            <th scope="col">{t("ceiling")}</th>
            <th scope="col">{t("rate")}</th>
            <th scope="col">{t("half of the timings")}</th>
            <th scope="col">{t("source")}</th>
          </tr>
        </thead>
        <tbody>
          {all.map(({ name, rate, low, source, work }, place) => {
            const unit = place < slopes ? "B/s" : "FLOP/s";
            return (
              <tr key={name}>
                <th scope="row">{t(name)}</th>
                <td>{formatRate(rate, unit)}</td>
                <td>{low === null ? "–" : `≥ ${formatRate(low, unit)}`}</td>
                <td>
                  {t(source)}
                  {work !== "" && ` (${t(work)})`}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Medians with their intervals from run to run; marked where they lie apart. */
import type { JSX } from "preact";
import { formatSeconds } from "../../data/quantity";
import { t } from "../../i18n/language";
import { YAxis, leftOf } from "../charts/Axes";
import type { Drawing } from "../charts/Chart";
import { polyline, triangle, widthOf, type Spot } from "../charts/marks";
import { formatBetween, scaleOf, seconds, type Scale } from "../charts/scale";
import type { HistoryView, PastRun } from "./view";

const TOP = 26;
const HEIGHT = 210;
const RIGHT = 18;
const BELOW = 40;

export function drawHistory(view: HistoryView, width: number): Drawing {
  const bottom = TOP + HEIGHT;
  const up = scaleOf(view.axis, bottom, TOP);
  const left = leftOf(up, seconds);
  const step = (width - RIGHT - left) / view.runs.length;
  const spots = view.runs.map((run, i): Spot => ({ x: left + (i + 0.5) * step, y: up(run.median_s), lines: said(run, view, i) }));
  const body = (
    <g>
      <YAxis scale={up} unit={seconds} left={left} right={width - RIGHT} />
      <Deadline view={view} up={up} left={left} right={width - RIGHT} />
      <line class="axis" x1={left} x2={width - RIGHT} y1={bottom} y2={bottom} />
      <path class="series" d={polyline(spots.map(({ x, y }) => [x, y]))} />
      {view.runs.map((run, i) => (
        <Run key={run.run_id} run={run} x={spots[i]?.x ?? 0} up={up} own={i === view.own} bottom={bottom} />
      ))}
      <Below runs={view.runs} spots={spots} bottom={bottom} />
    </g>
  );
  return { height: bottom + BELOW, body, spots };
}

function Deadline({ view, up, left, right }: { readonly view: HistoryView; readonly up: Scale; readonly left: number; readonly right: number }): JSX.Element | null {
  const due = view.deadline_s;
  if (due === null || due < view.axis.low || due > view.axis.high) return null;
  return (
    <>
      <line class="marker deadline" x1={left} x2={right} y1={up(due)} y2={up(due)} />
      <text class="label deadline" x={right} y={up(due) - 5} text-anchor="end">
        {`${t("deadline")} ${formatSeconds(due)}`}
      </text>
    </>
  );
}

interface RunProps {
  readonly run: PastRun;
  readonly x: number;
  readonly up: Scale;
  readonly own: boolean;
  readonly bottom: number;
}

function Run({ run, x, up, own, bottom }: RunProps): JSX.Element {
  const { low_s, high_s, change } = run;
  const top = up(high_s ?? run.median_s);
  return (
    <g>
      {change !== null && (
        <>
          <line class="marker" x1={x} x2={x} y1={TOP - 4} y2={bottom} />
          <path class={`change ${change}`} d={triangle(x, TOP - 10, 5.5, change === "faster")} />
        </>
      )}
      {low_s !== null && high_s !== null && <path class="series" d={`M${x} ${up(low_s)}V${top}M${x - 4} ${up(low_s)}h8M${x - 4} ${top}h8`} />}
      {own && <circle class="ring" cx={x} cy={up(run.median_s)} r={8} />}
      <circle class={own ? "own" : "run"} cx={x} cy={up(run.median_s)} r={4.5} />
    </g>
  );
}

/** Days and commits below the runs, as far as there is room; a day or commit that goes on is written once. */
function Below({ runs, spots, bottom }: { readonly runs: readonly PastRun[]; readonly spots: readonly Spot[]; readonly bottom: number }): JSX.Element {
  const rows = [runs.map((run) => taken(run).slice(0, 10)), runs.map((run) => run.commit_sha?.slice(0, 7) ?? "")];
  return (
    <>
      {rows.map((texts, row) =>
        spaced(texts, spots).map((i) => (
          <text key={`${row} ${i}`} class="tick" x={spots[i]?.x} y={bottom + 16 + row * 16} text-anchor="middle">
            {texts[i]}
          </text>
        )),
      )}
    </>
  );
}

/** Which texts are written below their marks: each first of its kind, unless it would run into the one before. */
export function spaced(texts: readonly string[], spots: readonly { readonly x: number }[]): number[] {
  const found: number[] = [];
  let end = -Infinity;
  texts.forEach((text, i) => {
    const [x, half] = [spots[i]?.x ?? 0, widthOf(text) / 2];
    if (text === "" || text === texts[i - 1] || x - half < end + 8) return;
    found.push(i);
    end = x + half;
  });
  return found;
}

/** When a run was made, as far as a reader needs it. */
export function taken(run: PastRun): string {
  return run.created.slice(0, 16).replace("T", " ");
}

function said(run: PastRun, view: HistoryView, i: number): string[] {
  const lines = [formatSeconds(run.median_s)];
  if (run.low_s !== null && run.high_s !== null) {
    lines.push(t("interval {interval}", { interval: formatBetween(run.low_s, run.high_s) }));
  }
  if (run.change !== null) lines.push(t(run.change === "slower" ? "▲ slower than the run before" : "▼ faster than the run before"));
  lines.push(`${taken(run)} UTC${run.commit_sha === null ? "" : ` · ${run.commit_sha.slice(0, 9)}`}`);
  lines.push(i === view.own ? t("the run of this page") : run.run_id);
  return lines;
}

/** The distribution of the samples: bars above, the share of samples up to each duration below, on one axis. */
import type { JSX } from "preact";
import { formatCount, formatSeconds, formatShare } from "../../data/quantity";
import { t } from "../../i18n/language";
import { BELOW, XAxis, YAxis, leftOf } from "../charts/Axes";
import type { Drawing } from "../charts/Chart";
import { labelRows, steps, widthOf, type Spot } from "../charts/marks";
import { counts, formatBetween, percent, scaleOf, seconds, type Scale } from "../charts/scale";
import type { Mark, MeasurementView, Spread } from "./view";

const ROW = 17;
const BARS = 150;
const GAP = 30;
const CURVE = 110;
const RIGHT = 14;

export function drawSpread(spread: Spread, view: MeasurementView, width: number): Drawing {
  const marks = spread.marks.filter(({ value_s }) => value_s >= spread.axis.low && value_s <= spread.axis.high);
  const top = marks.length * ROW + 8;
  const [foot, from] = [top + BARS, top + BARS + GAP];
  const bottom = from + CURVE;
  const heights = scaleOf({ low: 0, high: Math.max(...spread.counts) * 1.06, log: false }, foot, top);
  const shares = scaleOf({ low: 0, high: 1, log: false }, bottom, from);
  const left = Math.max(leftOf(heights, counts), leftOf(shares, percent, 5));
  const across = scaleOf(spread.axis, left, width - RIGHT);
  const body = (
    <>
      <YAxis scale={heights} unit={counts} left={left} right={width - RIGHT} />
      <YAxis scale={shares} unit={percent} left={left} right={width - RIGHT} most={5} />
      <XAxis scale={across} unit={seconds} top={top} bottom={bottom} />
      <line class="axis" x1={left} x2={width - RIGHT} y1={foot} y2={foot} />
      <Band marks={marks} across={across} top={top} bottom={bottom} />
      {spread.counts.map((_, bin) => bar(spread, view, bin, across, heights))}
      <path class="series" d={steps(spread.steps_s.map((value, i) => [across(value), shares(spread.shares[i] ?? 0)]))} />
      <Markers marks={marks} across={across} top={top} bottom={bottom} />
      <text class="label" x={left + 4} y={from - 8}>
        {t("share of samples up to here")}
      </text>
      {spread.beyond > 0 && (
        <text class="label" x={width - RIGHT} y={foot - 8} text-anchor="end">
          {t("{count} slower →", { count: spread.beyond })}
        </text>
      )}
    </>
  );
  const spots = spread.steps_s.map((value, i) => spot(spread, value, i, across, shares));
  const over = (at: number): JSX.Element => {
    const bin = binOf(spread, spread.steps_s[at] ?? 0);
    const { x = 0, y = 0 } = spots[at] ?? {};
    return (
      <>
        <line class="guide" x1={x} x2={x} y1={top} y2={bottom} />
        {bin !== null && <rect class="lit" {...box(spread, bin, across, heights)} />}
        <circle class="ring" cx={x} cy={y} r={5} />
      </>
    );
  };
  return { height: bottom + BELOW, body, spots, over };
}

/** The bin of a duration; null right of the axis. */
export function binOf(spread: Spread, value: number): number | null {
  if (value > (spread.edges_s.at(-1) ?? 0)) return null;
  const bin = spread.edges_s.findLastIndex((edge) => edge <= value);
  return Math.min(Math.max(bin, 0), spread.counts.length - 1);
}

function spot(spread: Spread, value: number, at: number, across: Scale, shares: Scale): Spot {
  const share = spread.shares[at] ?? 0;
  const bin = binOf(spread, value);
  const lines = [formatSeconds(value), t("{share} of the samples take at most this", { share: formatShare(share) })];
  if (bin !== null) {
    lines.push(
      t("samples between {low} and {high}: {count}", {
        count: formatCount(spread.counts[bin] ?? 0),
        low: formatSeconds(spread.edges_s[bin] ?? 0),
        high: formatSeconds(spread.edges_s[bin + 1] ?? 0),
      }),
    );
  }
  return { x: across(value), y: shares(share), lines };
}

function box(spread: Spread, bin: number, across: Scale, heights: Scale): { x: number; y: number; width: number; height: number } {
  const [x, end] = [across(spread.edges_s[bin] ?? 0), across(spread.edges_s[bin + 1] ?? 0)];
  const height = Math.max(heights(0) - heights(spread.counts[bin] ?? 0), 1);
  return { x, y: heights(0) - height, width: Math.max(end - x, 0.5), height };
}

function bar(spread: Spread, view: MeasurementView, bin: number, across: Scale, heights: Scale): JSX.Element | null {
  if ((spread.counts[bin] ?? 0) === 0) return null;
  const late = view.deadline_s !== null && (spread.edges_s[bin] ?? 0) >= view.deadline_s;
  return <rect key={bin} class={late ? "bar late" : "bar"} {...box(spread, bin, across, heights)} />;
}

interface Ruled {
  readonly marks: readonly Mark[];
  readonly across: Scale;
  readonly top: number;
  readonly bottom: number;
}

function Band({ marks, across, top, bottom }: Ruled): JSX.Element | null {
  const median = marks.find(({ name }) => name === "median");
  if (median === undefined || median.low_s === null || median.high_s === null) return null;
  const [start, end] = [across(median.low_s), across(median.high_s)];
  return <rect class="interval" x={start} width={Math.max(end - start, 1.5)} y={top} height={bottom - top} />;
}

function Markers({ marks, across, top, bottom }: Ruled): JSX.Element {
  const sorted = [...marks].sort((a, b) => a.value_s - b.value_s);
  const said = sorted.map(({ name, value_s }) => `${t(name)} ${formatSeconds(value_s)}`);
  const crowded = sorted.findIndex(({ value_s }, i) => across(value_s) + 5 + widthOf(said[i] ?? "") > across.to);
  const leaning = crowded < 0 ? sorted.length : crowded;
  const rows = labelRows(sorted.length, leaning);
  const edge = crowded < 0 ? across.to : across(sorted[crowded]?.value_s ?? 0);
  return (
    <>
      {sorted.map((mark, i) => {
        const x = across(mark.value_s);
        const y = top - 8 - (rows[i] ?? 0) * ROW;
        const kind = mark.name === "median" || mark.name === "deadline" ? mark.name : "tail";
        const right = i < leaning;
        const room = (right ? edge - x : x - across.from) - 10 - widthOf(said[i] ?? "");
        return (
          <g key={mark.name}>
            <line class={`marker ${kind}`} x1={x} x2={x} y1={y - 9} y2={bottom} />
            <text class={`label ${kind}`} x={right ? x + 5 : x - 5} y={y} text-anchor={right ? "start" : "end"}>
              {`${said[i]}${interval(mark, room)}`}
            </text>
          </g>
        );
      })}
    </>
  );
}

/** The interval of a mark, where there is room to write it. */
function interval({ low_s, high_s }: Mark, room: number): string {
  if (low_s === null || high_s === null) return "";
  const text = ` (${formatBetween(low_s, high_s)})`;
  return widthOf(text) < room ? text : "";
}

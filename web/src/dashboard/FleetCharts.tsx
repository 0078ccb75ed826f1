/** Latency and throughput of one function over the last ten minutes. */
import type { JSX } from "preact";
import { formatSeconds, significant } from "../data/quantity";
import { t } from "../i18n/language";
import { BELOW, leftOf, XAxis, YAxis } from "../widgets/charts/Axes";
import { Chart, type Drawing } from "../widgets/charts/Chart";
import { polyline, type Spot, widthOf } from "../widgets/charts/marks";
import { rate, scaleOf, seconds, type Axis, type Unit } from "../widgets/charts/scale";
import { stepAxis } from "./course";
import type { Moment } from "./production";

const [TOP, HEIGHT, RIGHT] = [14, 170, 16];
const GAP_S = 11; // two moments and a little
const perSecond = rate("/s");

interface Line {
  readonly name: string;
  readonly class: string;
  readonly of: (moment: Moment) => number | null;
}

const QUANTILES: readonly Line[] = [
  { name: "P50", class: "p50", of: ({ p50_s }) => p50_s },
  { name: "P95", class: "p95", of: ({ p95_s }) => p95_s },
  { name: "P99", class: "p99", of: ({ p99_s }) => p99_s },
];
const RATES: readonly Line[] = [
  { name: "calls", class: "p50", of: ({ rate_hz }) => rate_hz },
  { name: "errors", class: "failed", of: ({ failed_hz }) => failed_hz },
];

interface Props {
  readonly moments: readonly Moment[];
}

export function LatencyChart({ moments }: Props): JSX.Element | null {
  const values = moments.flatMap((moment) => QUANTILES.map((line) => line.of(moment)).filter((value) => value !== null && value > 0));
  if (moments.length < 2 || values.length === 0) return <p class="note">{t("Drawings appear here after some seconds of calls.")}</p>;
  const axis = stepAxis((values as number[]).map((step_s) => ({ elapsed_s: 0, step_s })));
  return (
    <Chart
      title="Latency"
      how="Each point stands for the calls that ended within five seconds, in all processes. From below: P50, P95, P99."
      change="Five seconds with few calls say little about P99; the table has the last minute."
      label={t("P99 now {time}", { time: formatSeconds(moments.at(-1)?.p99_s ?? 0) })}
      name="latency"
      across
      draw={(width) => drawn(moments, QUANTILES, axis, seconds, width)}
    />
  );
}

export function RateChart({ moments }: Props): JSX.Element | null {
  if (moments.length < 2) return null;
  const most = Math.max(...moments.map(({ rate_hz }) => rate_hz));
  return (
    <Chart
      title="Throughput and errors"
      how="Calls that ended per second, those that raised too, and below them those that raised."
      label={t("{rate} calls per second now", { rate: significant(moments.at(-1)?.rate_hz ?? 0) })}
      name="throughput"
      across
      draw={(width) => drawn(moments, RATES, { low: 0, high: most * 1.1 || 1, log: false }, perSecond, width)}
    />
  );
}

function drawn(moments: readonly Moment[], lines: readonly Line[], axis: Axis, unit: Unit, width: number): Drawing {
  const bottom = TOP + HEIGHT;
  const up = scaleOf(axis, bottom, TOP);
  const left = leftOf(up, unit);
  const [begin, end] = [moments[0]?.at_s ?? 0, moments.at(-1)?.at_s ?? 0];
  const right = width - RIGHT - Math.max(...lines.map(({ name }) => widthOf(t(name)))) - 6;
  const across = scaleOf({ low: begin, high: Math.max(end, begin + 5), log: false }, left, right);
  const every = [10, 30, 60, 120].find((step) => (end - begin) / step <= Math.max(2, (right - left) / 90)) ?? 300;
  const first = Math.ceil(begin / every) * every;
  const ticks = Array.from({ length: Math.max(0, Math.floor((end - first) / every) + 1) }, (_, i) => first + i * every);
  const last = lines.map((line) => moments.map(line.of).findLast((value) => value !== null) ?? null);
  const names = apart(last.map((value) => (value === null ? null : up(value) + 4)));
  return {
    height: bottom + BELOW,
    spots: moments.map((moment) => spotOf(moment, across(moment.at_s), lines, up(lines[0]?.of(moment) ?? axis.low), unit)),
    body: (
      <g>
        <YAxis scale={up} unit={unit} left={left} right={right} />
        <XAxis scale={across} unit={seconds} top={TOP} bottom={bottom} ticks={ticks.map((value) => ({ value, label: clockTime(value) }))} />
        {lines.map((line, i) => (
          <g key={line.name}>
            <path class={`over-live ${line.class}`} d={pieces(moments, line.of).map((piece) => polyline(piece.map(([at, value]) => [across(at), up(value)]))).join("")} />
            {names[i] !== undefined && names[i] !== null && (
              <text class="tick" x={right + 6} y={names[i]}>
                {t(line.name)}
              </text>
            )}
          </g>
        ))}
      </g>
    ),
  };
}

function spotOf(moment: Moment, x: number, lines: readonly Line[], y: number, unit: Unit): Spot {
  const said = (value: number | null): string => (value === null ? "–" : unit === seconds ? formatSeconds(value) : `${significant(value)} /s`);
  return { x, y, lines: [clockTime(moment.at_s), ...lines.map((line) => `${t(line.name)} ${said(line.of(moment))}`)] };
}

/** A line breaks off where nothing was told for a while. */
export function pieces(moments: readonly Moment[], of: Line["of"]): [number, number][][] {
  const found: [number, number][][] = [];
  let before = -Infinity;
  for (const moment of moments) {
    const value = of(moment);
    if (value === null) continue;
    if (moment.at_s - before > GAP_S) found.push([]);
    found.at(-1)?.push([moment.at_s, value]);
    before = moment.at_s;
  }
  return found;
}

/** Heights of names beside their lines, pushed up until none covers another; the lines come from below. */
export function apart(heights: readonly (number | null)[], room = 13): (number | null)[] {
  const order = heights.map((height, i) => [height, i] as const).filter(([height]) => height !== null);
  order.sort(([a], [b]) => (b ?? 0) - (a ?? 0));
  const placed = [...heights];
  let lowest = Infinity;
  for (const [height, i] of order) placed[i] = lowest = Math.min(height ?? 0, lowest - room);
  return placed;
}

/** A time of day in the reader's zone. */
export function clockTime(at_s: number): string {
  return new Date(at_s * 1000).toLocaleTimeString("en-GB");
}

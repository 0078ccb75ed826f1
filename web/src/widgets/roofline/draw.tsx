/** Operators on logarithmic axes under the ceilings of the machine. */
import type { JSX } from "preact";
import { formatCount, formatNs, formatShare, significant } from "../../data/quantity";
import { t } from "../../i18n/language";
import { BELOW_TITLED, XAxis, YAxis, leftOf } from "../charts/Axes";
import type { Drawing } from "../charts/Chart";
import { placed, polyline, shortened, type Box, type Placed, type Spot, type Wanted } from "../charts/marks";
import { formatRate, plain, rate, scaleOf, type Scale } from "../charts/scale";
import { kindOf, shapeOf } from "./shape";
import type { Reached, RooflineView } from "./view";

const TOP = 16;
const RIGHT = 14;
const LABELLED = 6;
const LONGEST = 28;
const FLOP = rate("FLOP/s");

interface Plane {
  readonly across: Scale;
  readonly up: Scale;
}

export function drawRoofline(view: RooflineView, width: number): Drawing {
  const bottom = TOP + Math.min(Math.max(width * 0.42, 240), 380);
  const up = scaleOf(view.up, bottom, TOP);
  const left = leftOf(up, FLOP);
  const across = scaleOf(view.across, left, width - RIGHT);
  const plane = { across, up };
  const spots = view.points.map((point): Spot => ({ x: across(point.intensity), y: up(point.flop_per_s), lines: said(point) }));
  const frame = { left: left + 2, right: width - RIGHT, top: 0, bottom: bottom - 2 };
  const marks = spots.map(({ x, y }, i): Box => around(x, y, radius(view.points[i])));
  const labels = placed([...roofLabels(view, plane), ...names(view, spots)], frame, marks);
  const body = (
    <g>
      <YAxis scale={up} unit={FLOP} left={left} right={width - RIGHT} />
      <XAxis scale={across} unit={plain} top={TOP} bottom={bottom} title={t("FLOP per byte of memory traffic")} />
      <Roof view={view} plane={plane} />
      {view.points.map((_, i) => mark(view.points[view.points.length - 1 - i], spots[view.points.length - 1 - i]))}
      {labels.map((label) => (
        <Label key={`${label.x} ${label.y}`} {...label} />
      ))}
    </g>
  );
  return { height: bottom + BELOW_TITLED, body, spots, over: (at) => ring(view.points[at], spots[at]) };
}

/** The larger, the more time; areas compare. */
export function radius(point: Reached | undefined): number {
  return 3.5 + 15 * Math.sqrt(Math.min(Math.max(point?.share ?? 0, 0), 1));
}

function around(x: number, y: number, reach: number): Box {
  return { left: x - reach, right: x + reach, top: y - reach, bottom: y + reach };
}

/** The operators that take the most time. */
function names(view: RooflineView, spots: readonly Spot[]): Wanted[] {
  return view.points.slice(0, LABELLED).map((point, i) => ({
    x: spots[i]?.x ?? 0,
    y: spots[i]?.y ?? 0,
    gap: radius(point),
    text: shortened(point.name.replace(/^aten::/, ""), LONGEST),
  }));
}

/** What the roof is: above the end of each ceiling, and somewhere along each slope. */
function roofLabels(view: RooflineView, { across, up }: Plane): Wanted[] {
  const ceilings = view.ceilings.map(({ name, rate }): Wanted => {
    const y = up(rate);
    const tries = [5, -15].map((off) => ({ x: across.to, y: y - off, anchor: "end" as const }));
    return { x: 0, y, gap: 0, text: `${name} ${formatRate(rate, "FLOP/s")}`, tries };
  });
  const slopes = view.slopes.map(({ name, rate }): Wanted => {
    const tries = [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6].flatMap((share) => {
      const at = across.value(across.from + share * (across.to - across.from));
      const y = up(at * rate);
      const sides = [{ x: across(at) + 6, y: y + 17, anchor: "start" as const }, { x: across(at) - 4, y: y - 8, anchor: "end" as const }];
      return name === "memory" ? sides : sides.toReversed(); // below the cache's slope lies the memory's
    });
    return { x: 0, y: 0, gap: 0, text: `${t(name)} ${formatRate(rate, "B/s")}`, tries };
  });
  return [...ceilings, ...slopes];
}

function mark(point: Reached | undefined, spot: Spot | undefined): JSX.Element | null {
  if (point === undefined || spot === undefined) return null;
  const kind = kindOf(point.bound);
  return <path class={`reached ${kind}`} d={shapeOf(kind, spot.x, spot.y, radius(point))} />;
}

function ring(point: Reached | undefined, spot: Spot | undefined): JSX.Element {
  return <circle class="ring" cx={spot?.x} cy={spot?.y} r={radius(point) + 3} />;
}

function Label({ x, y, anchor, text }: Placed): JSX.Element {
  return (
    <text class="label" x={x} y={y} text-anchor={anchor}>
      {text}
    </text>
  );
}

/** Slopes up to the highest ceiling, ceilings from the memory's slope to the right; bands where half of the timings stay below. */
function Roof({ view, plane: { across, up } }: { readonly view: RooflineView; readonly plane: Plane }): JSX.Element {
  const memory = view.slopes.find(({ name }) => name === "memory")?.rate ?? null;
  const highest = view.ceilings.at(-1)?.rate ?? view.up.high;
  const from = (rate: number): number => (memory === null ? view.across.low : Math.max(rate / memory, view.across.low));
  const ends = (rate: number): readonly [number, number] => [Math.max(view.up.low / rate, view.across.low), Math.min(highest / rate, view.across.high)];
  const slope = (rate: number, of = rate): (readonly [number, number])[] => ends(of).map((x) => [across(x), up(x * rate)] as const);
  return (
    <>
      {view.slopes.map(({ name, rate, low }) => {
        const [start, end] = ends(rate);
        if (start >= end) return null;
        return (
          <g key={name}>
            {low !== null && <path class="roof-band" d={`${polyline([...slope(rate), ...slope(low, rate).toReversed()])}Z`} />}
            <path class={`roof ${name}`} d={polyline(slope(rate))} />
          </g>
        );
      })}
      {view.ceilings.map(({ name, rate, low }) => (
        <g key={name}>
          {low !== null && <path class="roof-band" d={`M${across(from(rate))} ${up(rate)}H${across.to}V${up(low)}H${across(from(rate))}Z`} />}
          <path class="roof" d={`M${across(from(rate))} ${up(rate)}H${across.to}`} />
        </g>
      ))}
    </>
  );
}

function said(point: Reached): string[] {
  const { calls, time_ns, share, flop_per_s, bytes_per_s, share_of_roof, shapes, place } = point;
  const lines = [shortened(point.name, 80)];
  lines.push(t("{time}, {share} of the time; calls: {calls}", { time: formatNs(time_ns), calls: formatCount(calls), share: formatShare(share) }));
  lines.push(`${formatRate(flop_per_s, "FLOP/s")} · ${significant(point.intensity)} FLOP/B${bytes_per_s === null ? "" : ` · ${formatRate(bytes_per_s, "B/s")}`}`);
  if (share_of_roof !== null) {
    lines.push(t("{share} of the roof, {bound}", { share: formatShare(share_of_roof), bound: t(kindOf(point.bound) === "unknown" ? "limit unknown" : `bound by ${kindOf(point.bound)}`) }));
  }
  if (shapes !== "") lines.push(shortened(shapes, 90));
  if (place !== null) lines.push(shortened(place, 80));
  return lines;
}

/** Samples in the order they were measured, the warm-up beside them on an axis of its own. */
import type { JSX } from "preact";
import { formatCount, formatSeconds } from "../../data/quantity";
import { t } from "../../i18n/language";
import { BELOW, XAxis, YAxis, leftOf } from "../charts/Axes";
import type { Drawing } from "../charts/Chart";
import { dots, triangle, widthOf, type Spot } from "../charts/marks";
import { counts, scaleOf, seconds, type Scale } from "../charts/scale";
import type { Course, MeasurementView, TimeBlock } from "./view";

const TOP = 22;
const HEIGHT = 200;
const RIGHT = 14;
const FEW = 60;
/** Narrower than this the warm-up stands above the samples. */
const NARROW = 620;

export function drawCourse(course: Course, view: MeasurementView, width: number): Drawing {
  const parts: Drawing[] = [];
  let [left, top] = [0, 0];
  if (course.warmup_axis !== null && course.warmup_s.length > 0) {
    const beside = width >= NARROW;
    parts.push(drawWarmup(course, view, 0, beside ? Math.round(width * 0.27) : width - RIGHT));
    if (beside) left = Math.round(width * 0.27) + 26;
    else top = TOP + HEIGHT + BELOW + 14;
  }
  parts.push(drawSteady(course, view, { left, top, right: width - RIGHT }));
  return {
    height: Math.max(...parts.map(({ height }) => height)),
    body: <>{parts.map(({ body }) => body)}</>,
    spots: parts.flatMap(({ spots }) => spots),
  };
}

function drawWarmup(course: Course, view: MeasurementView, left: number, right: number): Drawing {
  const bottom = TOP + HEIGHT;
  const up = scaleOf(course.warmup_axis ?? course.axis, bottom, TOP);
  const start = left + leftOf(up, seconds);
  const step = (right - start) / course.warmup_s.length;
  const place = (i: number): number => start + (i + 0.5) * step;
  const size = Math.min(3, Math.max(1.2, step));
  const spots = course.warmup_s.map((value, i): Spot => ({
    x: place(i),
    y: up(value),
    lines: [t("Warm-up step {number}", { number: i + 1 }), formatSeconds(value), times(value, view)],
  }));
  const body = (
    <g>
      <YAxis scale={up} unit={seconds} left={start} right={right} />
      <line class="axis" x1={start} x2={right} y1={bottom} y2={bottom} />
      <line class="marker median" x1={start} x2={right} y1={up(view.median_s)} y2={up(view.median_s)} />
      {course.warmup_s.map((value, i) => (
        <rect key={i} class="warmup" x={place(i) - size} y={up(value) - size} width={size * 2} height={size * 2} />
      ))}
      <text class="panel-title" x={start} y={TOP - 9}>
        {t("Warm-up")}
      </text>
      <text class="tick" x={start} y={bottom + 16}>
        {course.warmup_s.length < course.warmup_steps
          ? t("{shown} of {count} steps", { shown: course.warmup_s.length, count: formatCount(course.warmup_steps) })
          : t(course.warmup_steps === 1 ? "{count} step" : "{count} steps", { count: formatCount(course.warmup_steps) })}
      </text>
    </g>
  );
  return { height: bottom + BELOW, body, spots };
}

interface Where {
  readonly left: number;
  readonly top: number;
  readonly right: number;
}

function drawSteady(course: Course, view: MeasurementView, { left, top, right }: Where): Drawing {
  const [head, bottom] = [top + TOP, top + TOP + HEIGHT];
  const up = scaleOf(course.axis, bottom, head);
  const start = left + leftOf(up, seconds);
  const across = scaleOf({ low: 0.5, high: course.num_samples + 0.5, log: false }, start, right);
  const spots = course.samples_s.map((_, i) => spotOf(course, view, i, across, up));
  const body = (
    <g>
      <YAxis scale={up} unit={seconds} left={start} right={right} />
      <XAxis scale={across} unit={counts} top={head} bottom={bottom} />
      <line class="marker median" x1={start} x2={right} y1={up(view.median_s)} y2={up(view.median_s)} />
      <Dots course={course} spots={spots} />
      <Outliers course={course} spots={spots} up={up} />
      {course.blocks.map(({ first, end, median_s }) => (
        <line key={first} class="middle" x1={across(first + 1)} x2={across(end)} y1={up(median_s)} y2={up(median_s)} />
      ))}
      <Drift course={course} across={across} up={up} />
      <text class="panel-title" x={start} y={head - 9}>
        {view.steady ? t("Steady samples") : t("Samples")}
      </text>
      {widthOf(t("Steady samples")) * 2 + 90 < right - start && (
        <text class="tick" x={right} y={head - 9} text-anchor="end">
          {t("median {median}", { median: formatSeconds(view.median_s) })}
        </text>
      )}
    </g>
  );
  return { height: bottom + BELOW, body, spots };
}

function Dots({ course, spots }: { readonly course: Course; readonly spots: readonly Spot[] }): JSX.Element {
  const outliers = new Set(course.outliers);
  const paths: (readonly [number, number])[][] = [[], []];
  let block = 0;
  spots.forEach(({ x, y }, i) => {
    while ((course.blocks[block]?.end ?? Infinity) <= (course.index[i] ?? 0)) block++;
    if (!outliers.has(i)) paths[block % 2]?.push([x, y]);
  });
  const size = spots.length > FEW ? 3.6 : 6.4;
  return (
    <>
      {paths.map((places, i) => (
        <path key={i} class={i === 0 ? "dots" : "dots other"} stroke-width={size} d={dots(places)} />
      ))}
    </>
  );
}

function Outliers({ course, spots, up }: { readonly course: Course; readonly spots: readonly Spot[]; readonly up: Scale }): JSX.Element {
  const places = course.outliers.map((i) => spots[i]).filter((spot) => spot !== undefined);
  return <path class="outlier" d={places.map(({ x, y }) => triangle(x, Math.max(y, up.to + 3))).join("")} />;
}

function Drift({ course, across, up }: { readonly course: Course; readonly across: Scale; readonly up: Scale }): JSX.Element | null {
  const [first, last] = [course.blocks[0], course.blocks.at(-1)];
  if (course.trend === null || first === undefined || last === undefined) return null;
  const middle = ({ first: from, end }: TimeBlock): number => across((from + end + 1) / 2);
  return <line class="trend" x1={middle(first)} x2={middle(last)} y1={up(course.trend.start_s)} y2={up(course.trend.end_s)} />;
}

function spotOf(course: Course, view: MeasurementView, i: number, across: Scale, up: Scale): Spot {
  const [value, index] = [course.samples_s[i] ?? 0, course.index[i] ?? i];
  const block = course.blocks.findIndex(({ end }) => index < end);
  const lines = [t("Sample {number} of {count}", { number: formatCount(index + 1), count: formatCount(course.num_samples) })];
  lines.push(formatSeconds(value), times(value, view));
  if (block >= 0) {
    lines.push(t("block {number}, median {median}", { number: block + 1, median: formatSeconds(course.blocks[block]?.median_s ?? 0) }));
  }
  return { x: across(index + 1), y: up(value), lines };
}

function times(value: number, view: MeasurementView): string {
  return view.median_s > 0 ? t("{ratio}× the median", { ratio: (value / view.median_s).toPrecision(3) }) : "";
}

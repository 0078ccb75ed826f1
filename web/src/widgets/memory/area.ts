/** Draws live bytes over a recording: layers on top of each other, phases above, what the allocator holds as a line. */
import { colour } from "../../canvas/theme";
import type { Frame } from "../../canvas/Surface";
import { toPixels } from "../../canvas/viewport";
import { formatBytes } from "../../data/quantity";
import { t } from "../../i18n/language";
import { byteTicks, type Layer, type Mark, type PhaseSpan, pointAt } from "./model";
import { line, prepare, write } from "./pen";

export const AREA_HEIGHT = 320;
const LANE = 22;
const TOP = LANE + 22;
const NAME_PX = 15;

/** What is drawn. */
export interface Area {
  /** Place of each point on the axis, ascending. */
  readonly axis: Float64Array;
  /** Upper edges, the lowest first. */
  readonly tops: readonly Layer[];
  readonly slots: ReadonlyMap<string, number>;
  readonly reserved: Float64Array | null;
  readonly phases: readonly PhaseSpan[];
  readonly marks: readonly Mark[];
  readonly peak: number;
  /** All that was alive there, hidden layers too. */
  readonly peakBytes: number;
  /** What the highest point is called. */
  readonly peakName: string;
  readonly most: number;
  readonly pinned: number | null;
  readonly pointed: number | null;
}

/** Draw it all. */
export function drawArea(frame: Frame, area: Area): void {
  const { context, width, height, range } = frame;
  const x = (value: number): number => toPixels(range, width, value);
  const y = (bytes: number): number => height - 6 - (bytes / Math.max(area.most, 1)) * (height - 6 - TOP);
  const first = Math.max(0, pointAt(area.axis, range.start));
  const last = Math.min(area.axis.length - 1, pointAt(area.axis, range.end) + 1);
  const at = (point: number): number => x(area.axis[Math.min(point, area.axis.length - 1)] ?? 0);
  prepare(context);
  let below: Layer | null = null;
  for (const layer of area.tops) {
    context.fillStyle = colour(`--phase-${area.slots.get(layer.name) ?? 5}`);
    fillBetween(context, layer.values, below?.values ?? null, { first, last, at, y });
    below = layer;
  }
  drawTicks(context, area.most, { width, y });
  drawPhases(context, area.phases, { width, height, at });
  drawNames(context, area, { first, last, at, y, width });
  if (area.reserved !== null) drawReserved(context, area.reserved, { first, last, at, y });
  for (const mark of area.marks) upright(context, at(mark.point), height, { ink: "--late", dash: [2, 3], head: SIGNS[mark.kind] });
  upright(context, at(area.peak), height, { ink: "--median", dash: [6, 3], head: "" });
  if (area.pinned !== null) upright(context, at(area.pinned), height, { ink: "--ink", dash: [], head: "" });
  if (area.pointed !== null) upright(context, at(area.pointed), height, { ink: "--soft", dash: [1, 2], head: "" });
  labelPeak(context, area, { at, width });
}

/** What stands for an event at its head. */
export const SIGNS: Readonly<Record<Mark["kind"], string>> = { failed: "✕", emptied: "▽", refused: "!" };

interface Edges {
  readonly first: number;
  readonly last: number;
  readonly at: (point: number) => number;
  readonly y: (bytes: number) => number;
}

/** Bytes stay as they are until the next event: edges are steps. */
function fillBetween(context: CanvasRenderingContext2D, top: Float64Array, below: Float64Array | null, { first, last, at, y }: Edges): void {
  context.beginPath();
  context.moveTo(at(first), y(below?.[first] ?? 0));
  for (let i = first; i <= last; i++) {
    context.lineTo(at(i), y(top[i] ?? 0));
    context.lineTo(at(i + 1), y(top[i] ?? 0));
  }
  for (let i = last; i >= first; i--) {
    context.lineTo(at(i + 1), y(below?.[i] ?? 0));
    context.lineTo(at(i), y(below?.[i] ?? 0));
  }
  context.closePath();
  context.fill();
}

function drawTicks(context: CanvasRenderingContext2D, most: number, { width, y }: { readonly width: number; readonly y: (bytes: number) => number }): void {
  for (const tick of byteTicks(0, most, 5)) {
    context.lineWidth = 1;
    const height = Math.round(y(tick)) + 0.5;
    context.strokeStyle = colour("--ink");
    context.globalAlpha = 0.13;
    line(context, 0, height, width, height);
    context.globalAlpha = 1;
    if (tick > 0) write(context, formatBytes(tick), 6, height - 8, "left");
  }
}

function drawPhases(context: CanvasRenderingContext2D, phases: readonly PhaseSpan[], { width, height, at }: { readonly width: number; readonly height: number; readonly at: (point: number) => number }): void {
  const names = [...new Set(phases.map(({ name }) => name))];
  for (const { name, first, last } of phases) {
    const [from, to] = [Math.max(0, at(first)), Math.min(width, at(last + 1))];
    if (to <= 0 || from >= width || to <= from) continue;
    context.fillStyle = colour("--ink");
    context.globalAlpha = names.indexOf(name) % 2 === 0 ? 0.07 : 0.15;
    context.fillRect(from, 0, Math.max(1, to - from), LANE - 2);
    context.globalAlpha = 0.16;
    context.lineWidth = 1;
    context.strokeStyle = colour("--ink");
    if (to - from > 6) line(context, Math.round(from) + 0.5, LANE - 2, Math.round(from) + 0.5, height);
    context.globalAlpha = 1;
    const said = fitting(context, t(name), to - from - 8);
    context.fillStyle = colour("--ink");
    context.textAlign = "center";
    if (said !== "") context.fillText(said, (from + to) / 2, LANE / 2 - 1);
  }
}

/** The name of each layer in the widest stretch of the view in which it is thick enough, if it has room there. */
function drawNames(context: CanvasRenderingContext2D, area: Area, { first, last, at, y, width }: Edges & { readonly width: number }): void {
  let below: Layer | null = null;
  for (const layer of area.tops) {
    const base: Layer | null = below;
    below = layer;
    const thick = (i: number): boolean => y(base?.values[i] ?? 0) - y(layer.values[i] ?? 0) >= NAME_PX;
    const stretch = widest(first, last, thick, (i) => Math.min(width, Math.max(0, at(i))));
    const half = context.measureText(t(layer.name)).width / 2 + 6;
    if (stretch === null || stretch[1] - stretch[0] < half * 2) continue;
    const middle = Math.min(Math.max((stretch[0] + stretch[1]) / 2, half), width - half);
    const room = roomAround(layer, base, area.axis, { middle, half, at, y });
    if (room === null) continue;
    context.lineWidth = 2.5;
    context.strokeStyle = "#ffffff80";
    context.fillStyle = "#14171c";
    context.textAlign = "center";
    context.strokeText(t(layer.name), middle, room);
    context.fillText(t(layer.name), middle, room);
  }
}

/** The longest run of points that are so, in pixels. */
function widest(first: number, last: number, so: (i: number) => boolean, at: (i: number) => number): readonly [number, number] | null {
  let best: readonly [number, number] | null = null;
  for (let i = first; i <= last; i++) {
    if (!so(i)) continue;
    const from = at(i);
    while (i < last && so(i + 1)) i++;
    const to = at(i + 1);
    if (best === null || to - from > best[1] - best[0]) best = [from, to];
  }
  return best;
}

/** How high a name can stand within its layer, looked at in its middle and at both ends; null where it cannot. */
function roomAround(layer: Layer, below: Layer | null, axis: Float64Array, { middle, half, at, y }: Omit<Edges, "first" | "last"> & { readonly middle: number; readonly half: number }): number | null {
  const [start, end] = [at(0), at(axis.length - 1)];
  const valueAt = (pixels: number): number => (axis[0] ?? 0) + ((pixels - start) / Math.max(end - start, 1e-9)) * ((axis[axis.length - 1] ?? 0) - (axis[0] ?? 0));
  const edges = [middle - half, middle, middle + half].map((pixels) => {
    const point = pointAt(axis, valueAt(pixels));
    return [y(below?.values[point] ?? 0), y(layer.values[point] ?? 0)] as const;
  });
  const [low, high] = [Math.min(...edges.map(([edge]) => edge)), Math.max(...edges.map(([, edge]) => edge))];
  return low - high >= 13 ? (low + high) / 2 : null;
}

function drawReserved(context: CanvasRenderingContext2D, reserved: Float64Array, { first, last, at, y }: Edges): void {
  context.strokeStyle = colour("--ink");
  context.lineWidth = 1.5;
  context.setLineDash([5, 4]);
  context.beginPath();
  for (let i = first; i <= last; i++) {
    context.lineTo(at(i), y(reserved[i] ?? 0));
    context.lineTo(at(i + 1), y(reserved[i] ?? 0));
  }
  context.stroke();
  context.setLineDash([]);
  let highest = first;
  for (let i = first; i <= last; i++) if ((reserved[i] ?? 0) > (reserved[highest] ?? 0)) highest = i;
  const above = y(reserved[highest] ?? 0) - 9;
  write(context, t("reserved"), Math.max(at(highest), 0) + 6, above < LANE + 16 ? above + 18 : above, "left");
}

function upright(context: CanvasRenderingContext2D, x: number, height: number, { ink, dash, head }: { readonly ink: string; readonly dash: number[]; readonly head: string }): void {
  context.strokeStyle = colour(ink);
  context.lineWidth = 1.5;
  context.setLineDash(dash);
  line(context, x, LANE, x, height);
  context.setLineDash([]);
  if (head !== "") write(context, head, x + (x < 40 ? 5 : -5), LANE + 8, x < 40 ? "left" : "right", ink);
}

function labelPeak(context: CanvasRenderingContext2D, area: Area, { at, width }: { readonly at: (point: number) => number; readonly width: number }): void {
  const x = at(area.peak);
  if (x < -1 || x > width + 1) return;
  write(context, `${area.peakName} ${formatBytes(area.peakBytes)}`, x + (x > width / 2 ? -6 : 6), LANE + 9, x > width / 2 ? "right" : "left", "--median");
}

/** The text, its beginning, or nothing, as the room allows. */
function fitting(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  for (let end = text.length - 1; end >= 3; end--) {
    const cut = `${text.slice(0, end)}…`;
    if (context.measureText(cut).width <= room) return cut;
  }
  return "";
}

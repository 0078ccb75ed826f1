/** Paints the whole view: ruler with steps, tracks, what is selected and measured, launches. */
import { colour } from "../../canvas/theme";
import { type Range, toPixels } from "../../canvas/viewport";
import type { Frame } from "../../canvas/Surface";
import { formatCount, formatNs } from "../../data/quantity";
import { t } from "../../i18n/language";
import { Batches } from "./drawing";
import type { Lit } from "./find";
import { HEADER_PX, type Layout, type Placed, RULER_PX, rowTop, tracksWithin } from "./layout";
import { laneOf, launchedBy, type Scene, sourceOf } from "./scene";
import { stepMarks } from "./steps";
import { ticksOf } from "./ticks";

/** What is to be seen. */
export interface View {
  readonly scene: Scene;
  readonly layout: Layout;
  readonly scrolled: number;
  readonly lit: Lit;
  readonly selected: number;
  readonly measured: Range | null;
  /** Names of tracks on the canvas itself: for pictures, which have no buttons. */
  readonly named?: boolean;
}

const FONT = "11px system-ui, sans-serif";
const MOST_ARROWS = 200;
const STEP_TEXT_PX = 46;

export function paintView(frame: Frame, view: View): void {
  const { context, width, height, range } = frame;
  const tracks = tracksWithin(view.layout, view.scrolled, view.scrolled + height - RULER_PX);
  paintStepLines(frame, view);
  context.save();
  context.beginPath();
  context.rect(0, RULER_PX, width, height - RULER_PX);
  context.clip();
  const shift = RULER_PX - view.scrolled;
  for (const track of tracks) paintHeader(frame, view, track, shift);
  const batches = new Batches(view.scene);
  const looks = { range, width, lit: view.lit };
  for (const track of tracks) {
    for (const lane of track.lanes) {
      const top = rowTop(track, lane.row) + shift;
      if (top + track.rowPx > RULER_PX && top < height) batches.add(lane, top, track.rowPx - 1, looks);
    }
  }
  batches.draw(context);
  if (view.selected >= 0) paintSelected(frame, view, shift);
  context.restore();
  if (view.measured !== null) paintMeasured(frame, view.measured);
  paintRuler(frame, view.scene);
}

function paintHeader({ context, width }: Frame, view: View, placed: Placed, shift: number): void {
  const top = placed.top + shift;
  context.fillStyle = colour("--grid");
  context.fillRect(0, top, width, HEADER_PX - 2);
  if (view.named !== true) return;
  const track = view.scene.content.tracks[placed.track];
  context.fillStyle = colour("--ink");
  context.font = FONT;
  context.textBaseline = "middle";
  context.fillText(`${track?.process ?? ""} · ${track?.name ?? ""}`, 6, top + HEADER_PX / 2 - 1);
}

function paintStepLines({ context, width, height, range }: Frame, { scene }: View): void {
  context.fillStyle = colour("--line");
  const { marks, isMerged } = stepMarks(scene.content.steps, range, width);
  if (isMerged) return; // lines every few pixels would hide the slices
  for (const { step } of marks) {
    const { start_ns: start, end_ns: end } = scene.content.steps[step] ?? { start_ns: 0, end_ns: 0 };
    context.fillRect(Math.round(toPixels(range, width, start)), RULER_PX, 1, height - RULER_PX);
    context.fillRect(Math.round(toPixels(range, width, end)), RULER_PX, 1, height - RULER_PX);
  }
}

function paintRuler({ context, width, range }: Frame, scene: Scene): void {
  context.fillStyle = colour("--panel");
  context.fillRect(0, 0, width, RULER_PX);
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "left";
  const [ink, soft, line] = [colour("--ink"), colour("--soft"), colour("--line")];
  const { marks, count, isMerged } = stepMarks(scene.content.steps, range, width);
  for (const { from, to, step, isOdd } of marks) {
    context.fillStyle = isOdd ? line : colour("--grid");
    context.fillRect(from, 1, Math.max(to - from - 1, 1), 14);
    const one = scene.content.steps[step];
    if (one === undefined || to - from < STEP_TEXT_PX) continue;
    context.fillStyle = ink;
    const room = Math.floor((to - from - 8) / 6.1);
    const text = `${one.name}, ${formatNs(one.end_ns - one.start_ns)}`;
    context.fillText(text.length <= room ? text : one.name.slice(-room), from + 4, 8.5);
  }
  if (isMerged) paintCount(context, t("{count} steps, several to a mark", { count: formatCount(count) }));
  for (const { at, text } of ticksOf(range, width)) {
    const x = Math.round(toPixels(range, width, at));
    context.fillStyle = line;
    context.fillRect(x, 17, 1, RULER_PX - 17);
    context.fillStyle = soft;
    context.fillText(text, x + 4, 26);
  }
  context.fillStyle = line;
  context.fillRect(0, RULER_PX - 1, width, 1);
}

/** How many steps the marks stand for, on a ground of its own. */
function paintCount(context: CanvasRenderingContext2D, text: string): void {
  context.fillStyle = colour("--panel");
  context.fillRect(0, 1, context.measureText(text).width + 10, 14);
  context.fillStyle = colour("--ink");
  context.fillText(text, 4, 8.5);
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

function boxOf({ width, range }: Frame, { scene, layout }: View, slice: number, shift: number): Box | null {
  const lane = laneOf(scene, slice);
  const placed = lane === undefined ? undefined : layout.tracks[lane.track];
  if (lane === undefined || placed === undefined) return null;
  const top = rowTop(placed, lane.row) + shift;
  const left = toPixels(range, width, scene.start[slice] ?? 0);
  const right = Math.max(toPixels(range, width, scene.end[slice] ?? 0), left + 2);
  return { left, right, top, bottom: top + placed.rowPx - 1 };
}

function paintSelected(frame: Frame, view: View, shift: number): void {
  const { context, width } = frame;
  const { scene, selected } = view;
  const own = boxOf(frame, view, selected, shift);
  if (own === null) return;
  const source = sourceOf(scene, selected);
  const from = source < 0 ? null : boxOf(frame, view, source, shift);
  context.strokeStyle = colour("--accent");
  context.lineWidth = 1.5;
  if (from !== null) paintArrow(context, from, own);
  for (const work of launchedBy(scene, selected).slice(0, MOST_ARROWS)) {
    const to = boxOf(frame, view, work, shift);
    if (to !== null && to.left < width && to.right > 0) paintArrow(context, own, to);
  }
  context.strokeStyle = colour("--ink");
  context.lineWidth = 2;
  const [left, right] = [Math.max(own.left, -4), Math.min(own.right, width + 4)];
  context.strokeRect(left, own.top - 0.5, right - left, own.bottom - own.top + 1);
}

/** From the middle of a call to the start of what it launched. */
function paintArrow(context: CanvasRenderingContext2D, from: Box, to: Box): void {
  const [x0, x1] = [(from.left + from.right) / 2, to.left];
  const below = to.top >= from.bottom;
  const [y0, y1] = below ? [from.bottom, to.top] : [from.top, to.bottom];
  const bend = Math.max(Math.abs(y1 - y0) / 2, 12) * (below ? 1 : -1);
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  const tip = below ? -5 : 5;
  context.moveTo(x1 - 4, y1 + tip);
  context.lineTo(x1, y1);
  context.lineTo(x1 + 4, y1 + tip);
  context.stroke();
}

function paintMeasured({ context, width, height, range }: Frame, measured: Range): void {
  const left = toPixels(range, width, measured.start);
  const right = toPixels(range, width, measured.end);
  context.fillStyle = colour("--interval");
  context.fillRect(left, RULER_PX, right - left, height - RULER_PX);
  context.fillStyle = colour("--median");
  context.fillRect(left, RULER_PX, 1, height - RULER_PX);
  context.fillRect(right - 1, RULER_PX, 1, height - RULER_PX);
  const text = formatNs(measured.end - measured.start);
  context.font = `600 ${FONT}`;
  context.textBaseline = "middle";
  const extent = context.measureText(text).width;
  const x = Math.min(Math.max((left + right - extent) / 2, 4), width - extent - 4);
  context.fillStyle = colour("--panel");
  context.fillRect(x - 4, RULER_PX + 3, extent + 8, 16);
  context.fillStyle = colour("--median");
  context.fillText(text, x, RULER_PX + 11.5);
}

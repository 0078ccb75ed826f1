/** Draws live bytes after steps, with the growth that the verdict states laid through them. */
import type { Frame } from "../../canvas/Surface";
import { colour } from "../../canvas/theme";
import { type Range, toPixels } from "../../canvas/viewport";
import { formatBytes } from "../../data/quantity";
import { t } from "../../i18n/language";
import { byteTicks, type GrowthLine, type LeakSeries } from "./model";
import { line as stroke, path, prepare, write } from "./pen";

export const GROWTH_HEIGHT = 220;
const BOTTOM = 10;
const TOP = 14;

/** The extent of the vertical axis: all points and the line's interval, with some air; never without extent. */
export function levels({ live_bytes, line }: LeakSeries): Range {
  let [low, high] = [Infinity, -Infinity];
  for (const bytes of [...live_bytes, ...(line?.bytes ?? []), ...(line?.low_bytes ?? []), ...(line?.high_bytes ?? [])]) {
    low = Math.min(low, bytes);
    high = Math.max(high, bytes);
  }
  if (!Number.isFinite(low)) return { start: 0, end: 1 };
  // What differs by next to nothing is shown as a level, not blown up to fill the drawing.
  const air = Math.max((high - low) * 0.08, high * 0.01, 1);
  return { start: Math.max(0, low - air), end: high + air };
}

/** Draw it all. */
export function drawGrowth({ context, width, height, range }: Frame, leak: LeakSeries, pointed: number | null): void {
  const extent = levels(leak);
  const x = (step: number): number => toPixels(range, width, step);
  const y = (bytes: number): number => height - BOTTOM - ((bytes - extent.start) / (extent.end - extent.start)) * (height - BOTTOM - TOP);
  prepare(context);
  const warm = x(leak.warmup_steps - 0.5);
  if (leak.warmup_steps > 0 && warm > 0) {
    context.fillStyle = colour("--grid");
    context.fillRect(x(range.start), 0, warm - x(range.start), height);
    write(context, t("warm-up"), Math.max(6, warm - 6), height - 16, warm > 66 ? "right" : "left", "--soft");
  }
  for (const tick of byteTicks(extent.start, extent.end, 4)) {
    const level = Math.round(y(tick)) + 0.5;
    context.strokeStyle = colour("--grid");
    context.lineWidth = 1;
    stroke(context, 0, level, width, level);
    write(context, formatBytes(tick), 6, level - 8, "left", "--soft");
  }
  if (leak.line !== null) drawLine(context, leak.line, x, y);
  drawPoints(context, leak, { x, y, width });
  if (pointed !== null) {
    context.strokeStyle = colour("--soft");
    context.setLineDash([1, 2]);
    const place = x(leak.steps[pointed] ?? 0);
    stroke(context, place, 0, place, height);
    context.setLineDash([]);
  }
}

type Scale = (value: number) => number;

function drawLine(context: CanvasRenderingContext2D, line: GrowthLine, x: Scale, y: Scale): void {
  if (line.low_bytes.length > 0) {
    context.fillStyle = colour("--interval");
    context.beginPath();
    line.steps.forEach((step, i) => context.lineTo(x(step), y(line.high_bytes[i] ?? 0)));
    [...line.steps.keys()].reverse().forEach((i) => context.lineTo(x(line.steps[i] ?? 0), y(line.low_bytes[i] ?? 0)));
    context.fill();
  }
  context.strokeStyle = colour("--median");
  context.lineWidth = 2;
  path(context, line.steps.map((step, i) => [x(step), y(line.bytes[i] ?? 0)]));
  context.lineWidth = 1;
}

function drawPoints(context: CanvasRenderingContext2D, leak: LeakSeries, { x, y, width }: { readonly x: Scale; readonly y: Scale; readonly width: number }): void {
  context.fillStyle = colour("--series");
  const radius = leak.steps.length > width / 5 ? 1.6 : 2.8;
  leak.steps.forEach((step, i) => {
    const place = x(step);
    if (place < -4 || place > width + 4) return;
    context.beginPath();
    context.arc(place, y(leak.live_bytes[i] ?? 0), radius, 0, 2 * Math.PI);
    context.fill();
  });
}

/** The axes of all charts: lines across the drawing, labels at its edges. */
import type { JSX } from "preact";
import { widthOf } from "./marks";
import { ticksOf, type Scale, type Tick, type Unit } from "./scale";

interface XProps {
  readonly scale: Scale;
  readonly unit: Unit;
  readonly top: number;
  readonly bottom: number;
  /** What is along the axis; already in the reader's language. */
  readonly title?: string;
  /** Instead of round values. */
  readonly ticks?: readonly Tick[];
}

/** Room below a drawing for the labels of its horizontal axis. */
export const BELOW = 22;
/** The same with a title. */
export const BELOW_TITLED = 38;

export function XAxis({ scale, unit, top, bottom, title, ticks }: XProps): JSX.Element {
  const [left, right] = [Math.min(scale.from, scale.to), Math.max(scale.from, scale.to)];
  const shown = ticks ?? ticksOf(scale.axis, unit, Math.max(4, Math.floor((right - left) / 80)));
  const named = everySo(shown.map(({ value, label }) => [scale(value), widthOf(label)]));
  return (
    <g>
      {shown.map(({ value, label }, i) => {
        const x = scale(value);
        const half = widthOf(label) / 2;
        const side = x - half < left - 8 ? "start" : x + half > right + 8 ? "end" : "middle";
        return (
          <g key={label}>
            <line class="grid" x1={x} x2={x} y1={top} y2={bottom} />
            {i % named === 0 && (
              <text class="tick" x={x} y={bottom + 16} text-anchor={side}>
                {label}
              </text>
            )}
          </g>
        );
      })}
      <line class="axis" x1={left} x2={right} y1={bottom} y2={bottom} />
      {title !== undefined && (
        <text class="tick" x={(left + right) / 2} y={bottom + 33} text-anchor="middle">
          {title}
        </text>
      )}
    </g>
  );
}

const APART = 10;

/** Every how manieth label is written, so that they do not run into each other: places and widths in pixels. */
export function everySo(labels: readonly (readonly [number, number])[]): number {
  const fits = (step: number): boolean =>
    labels.every(([x, width], i) => {
      const [next, wide] = labels[i + step] ?? [Infinity, 0];
      return i % step !== 0 || next - x >= (width + wide) / 2 + APART;
    });
  let step = 1;
  while (step < labels.length && !fits(step)) step++;
  return step;
}

interface YProps {
  readonly scale: Scale;
  readonly unit: Unit;
  readonly left: number;
  readonly right: number;
  readonly most?: number;
}

export function YAxis({ scale, unit, left, right, most }: YProps): JSX.Element {
  return (
    <g>
      {yTicks(scale, unit, most).map(({ value, label }) => (
        <g key={label}>
          <line class="grid" x1={left} x2={right} y1={scale(value)} y2={scale(value)} />
          <text class="tick" x={left - 7} y={scale(value) + 4} text-anchor="end">
            {label}
          </text>
        </g>
      ))}
    </g>
  );
}

/** Room that the labels of a vertical axis need left of the drawing. */
export function leftOf(scale: Scale, unit: Unit, most?: number): number {
  return Math.ceil(Math.max(14, ...yTicks(scale, unit, most).map(({ label }) => widthOf(label))) + 10);
}

function yTicks(scale: Scale, unit: Unit, most = Math.max(2, Math.floor(Math.abs(scale.to - scale.from) / 34))): Tick[] {
  return ticksOf(scale.axis, unit, most);
}

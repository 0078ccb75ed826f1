/** Axes: where a value lies, which ticks there are, and how they are written. The same rules as in the static charts. */
import { significant } from "../../data/quantity";

/** From where to where an axis goes, as the page's data says. */
export interface Axis {
  readonly low: number;
  readonly high: number;
  readonly log: boolean;
}

/** Maps values onto pixels; those beyond the axis lie on its ends. */
export interface Scale {
  (value: number): number;
  /** The value at a pixel. */
  readonly value: (pixel: number) => number;
  readonly axis: Axis;
  readonly from: number;
  readonly to: number;
}

/** A place on an axis with what is written there. */
export interface Tick {
  readonly value: number;
  readonly label: string;
}

/** The unit that suits a value: its size, and its name with a space before it where one belongs. */
export type Unit = (value: number) => readonly [number, string];

const SECONDS = [
  [1, " s"],
  [1e-3, " ms"],
  [1e-6, " µs"],
] as const;
const PREFIXES = [
  [1e15, " P"],
  [1e12, " T"],
  [1e9, " G"],
  [1e6, " M"],
  [1e3, " k"],
] as const;

export const seconds: Unit = (value) => SECONDS.find(([size]) => Math.abs(value) >= size * 0.9995) ?? [1e-9, " ns"];
/** An interval in one unit, with as many digits as it takes to tell its ends apart: `4.118–4.122 ms`. */
export function formatBetween(low: number, high: number): string {
  const [size, name] = seconds(Math.max(Math.abs(low), Math.abs(high)));
  const ends = [3, 4, 5].map((digits) => [significant(low / size, digits), significant(high / size, digits)] as const);
  const [from, to] = ends.find(([a, b]) => a !== b) ?? ends[0] ?? ["", ""];
  return `${from}–${to}${name}`;
}

export const plain: Unit = () => [1, ""];
/** As `plain`, but no ticks between whole numbers. */
export const counts: Unit = () => [1, ""];
export const percent: Unit = () => [0.01, " %"];
/** Rates such as FLOP/s. */
export const rate =
  (name: string): Unit =>
  (value) => {
    const [size, prefix] = PREFIXES.find(([least]) => Math.abs(value) >= least * 0.9995) ?? [1, " "];
    return [size, prefix + name];
  };

/** A scale from an axis to a stretch of pixels, which may run upwards. */
export function scaleOf(axis: Axis, from: number, to: number): Scale {
  const turn = (value: number): number => (axis.log ? Math.log(value) : value);
  const [start, span] = [turn(axis.low), turn(axis.high) - turn(axis.low) || 1];
  const place = (value: number): number => {
    const inside = Math.min(Math.max(value, axis.low), axis.high);
    return from + ((turn(inside) - start) / span) * (to - from);
  };
  const value = (pixel: number): number => {
    const share = start + ((pixel - from) / (to - from || 1)) * span;
    return axis.log ? Math.exp(share) : share;
  };
  return Object.assign(place, { value, axis, from, to });
}

/** Multiples of 1, 2 or 5 times a power of ten between two values, about `count` steps of them. */
export function evenTicks(low: number, high: number, count: number): number[] {
  const span = high - low;
  if (!(span > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(span / count));
  const error = span / count / power;
  // Between two factors their geometric mean decides.
  const step = power * (error >= Math.sqrt(50) ? 10 : error >= Math.sqrt(10) ? 5 : error >= Math.SQRT2 ? 2 : 1);
  const found: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

/** An axis that holds all values with some air: for drawings whose range depends on what the reader chose. */
export function axisAround(values: readonly number[], air = 0.08): Axis {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const pad = (high - low) * air || Math.abs(high) * 0.05 || 1;
  return { low: low >= 0 ? Math.max(low - pad, 0) : low - pad, high: high + pad, log: false };
}

/** Round values on an axis, about `most` of them, with labels. */
export function ticksOf(axis: Axis, unit: Unit, most = 6): Tick[] {
  if (unit === counts) return wholeTicks(Math.ceil(axis.low), Math.floor(axis.high), most);
  if (axis.log) {
    const values = logTicks(axis.low, axis.high, most);
    if (values.length >= 3 || (values.length === 2 && axis.high > 10 * axis.low)) return values.map((value) => ({ value, label: written(value, unit(value)) }));
  }
  const [size, name] = unit(Math.max(Math.abs(axis.low), Math.abs(axis.high)));
  const values = evenTicks(axis.low / size, axis.high / size, Math.max(most - 1, 1));
  const step = (values[1] ?? 1) - (values[0] ?? 0);
  const decimals = Math.max(0, -Math.floor(Math.log10(Math.abs(step) || 1) + 1e-9));
  return values.map((value) => ({ value: value * size, label: value.toFixed(decimals) + name }));
}

function wholeTicks(low: number, high: number, most: number): Tick[] {
  const values = evenTicks(low, high, Math.max(Math.min(most - 1, high - low), 1)).filter(Number.isInteger);
  return values.map((value) => ({ value, label: String(value) }));
}

function logTicks(low: number, high: number, most: number): number[] {
  const powers: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) powers.push(power);
  let inside: number[] = [];
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    inside = powers.flatMap((power) => factors.map((factor) => factor * 10 ** power)).filter((v) => v >= low && v <= high);
    if (inside.length <= most) return inside;
  }
  const every = Math.ceil(inside.length / most);
  return inside.filter((_, i) => i % every === 0);
}

function written(value: number, [size, name]: readonly [number, string]): string {
  return String(Number((value / size).toPrecision(4))) + name;
}

/** A rate such as `3.20 TFLOP/s`. */
export function formatRate(value: number, name: string): string {
  const [size, unit] = rate(name)(value);
  return significant(value / size) + unit;
}

/** Marks of a time axis, at round moments. */
import type { Range } from "../../canvas/viewport";

export interface Tick {
  readonly at: number;
  readonly text: string;
}

const UNITS: readonly (readonly [number, string])[] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** A moment, to about a millionth of it: `839.123 ms`. */
export function momentOf(ns: number): string {
  const [unit, name] = UNITS.find(([size]) => Math.abs(ns) >= size) ?? [1, "ns"];
  return `${(ns / unit).toFixed(unit === 1 ? 0 : 3)} ${name}`;
}

/** The least of 1, 2 and 5 times a power of ten that is no smaller; whole nanoseconds. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * 0.999) ?? 10 * power;
}

/** Marks that are at least so many pixels apart, each with as many digits as tell it from its neighbours. */
export function ticksOf(range: Range, width: number, apartPx = 96): Tick[] {
  const step = roundStep(((range.end - range.start) / Math.max(width, 1)) * apartPx);
  const largest = Math.max(Math.abs(range.start), Math.abs(range.end));
  const [unit, name] = UNITS.find(([size]) => size <= Math.max(step, Math.min(largest, step * 999))) ?? [1, "ns"];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  const ticks: Tick[] = [];
  for (let i = Math.ceil(range.start / step); i * step <= range.end; i++) {
    ticks.push({ at: i * step, text: `${(i * step / unit).toFixed(digits)} ${name}` });
  }
  return ticks;
}

/** Filters of quantities as readers write them: `>1ms`, `<= 5 %`, `10us..2ms`, `=0`, `2k`. */
import type { Kind } from "./model";

/** Values from `low` to `high`, which belong to it unless they are left out. */
export interface Bound {
  readonly low: number;
  readonly high: number;
  readonly withLow: boolean;
  readonly withHigh: boolean;
}

const UNITS: Readonly<Partial<Record<Kind, Readonly<Record<string, number>>>>> = {
  ns: { "": 1, ns: 1, us: 1e3, "µs": 1e3, "μs": 1e3, ms: 1e6, s: 1e9, min: 60e9 },
  bytes: { "": 1, b: 1, k: 2 ** 10, kb: 1e3, kib: 2 ** 10, m: 2 ** 20, mb: 1e6, mib: 2 ** 20, g: 2 ** 30, gb: 1e9, gib: 2 ** 30, t: 2 ** 40, tb: 1e12, tib: 2 ** 40 },
  share: { "": 0.01, "%": 0.01 },
};
const PREFIXES: Readonly<Record<string, number>> = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const AMOUNT = /^([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([a-zµμ%/]*)$/i;

/** What a reader asks for; null when it is not understood. A quantity alone means at least so much. */
export function parseBound(kind: Kind, text: string): Bound | null {
  const range = text.split("..");
  if (range.length === 2) {
    const [low, high] = range.map((part) => amount(kind, part.trim()));
    if (low == null || high == null) return null;
    return { low, high, withLow: true, withHigh: true };
  }
  const [, sign = "", rest = ""] = /^\s*(>=|<=|≥|≤|>|<|=)?\s*(.*?)\s*$/.exec(text) ?? [];
  const value = amount(kind, rest);
  if (value === null) return null;
  if (sign === "=") return { low: value, high: value, withLow: true, withHigh: true };
  const withEqual = sign.length !== 1 || sign === "≥" || sign === "≤";
  return sign.startsWith("<") || sign === "≤"
    ? { low: -Infinity, high: value, withLow: true, withHigh: withEqual }
    : { low: value, high: Infinity, withLow: withEqual, withHigh: true };
}

/** Whether a value lies within; a missing one never does. */
export function within(bound: Bound, value: number | null): boolean {
  if (value === null || Number.isNaN(value)) return false;
  return (bound.withLow ? value >= bound.low : value > bound.low) && (bound.withHigh ? value <= bound.high : value < bound.high);
}

function amount(kind: Kind, text: string): number | null {
  const [, figure, unit = ""] = AMOUNT.exec(text.replace(/(\d),(?=\d{3})/g, "$1").replace(/(\d)\s+(?=\d)/g, "$1")) ?? [];
  if (figure === undefined) return null;
  const units = UNITS[kind];
  const scale = units === undefined ? PREFIXES[prefixOf(unit)] : units[unit.toLowerCase()];
  return scale === undefined ? null : Number(figure) * scale;
}

/** Of `TFLOP/s` the prefix; a unit without one has none. */
function prefixOf(unit: string): string {
  const first = unit.charAt(0).toLowerCase();
  return first in PREFIXES ? first : "";
}

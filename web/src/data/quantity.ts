/** Figures as the terminal and the static part write them: three significant digits and a unit. */

const TIMES: readonly (readonly [number, string])[] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** A duration in nanoseconds: `formatNs(31_900_000)` is `31.9 ms`. */
export function formatNs(ns: number): string {
  const [unit, name] = TIMES.find(([least]) => Math.abs(ns) >= least * 0.9995) ?? [1, "ns"];
  return `${significant(ns / unit)} ${name}`;
}

/** A duration in seconds. */
export function formatSeconds(seconds: number): string {
  return formatNs(seconds * 1e9);
}

/** A number of bytes: `formatBytes(1536)` is `1.50 KiB`. */
export function formatBytes(bytes: number): string {
  let [value, step] = [bytes, 0];
  while (Math.abs(value) >= 1023.5 && step < SIZES.length - 1) [value, step] = [value / 1024, step + 1];
  return step === 0 ? `${Math.round(value)} B` : `${significant(value)} ${SIZES[step]}`;
}

/** A share of 1 in per cent: `formatShare(0.1234)` is `12.3 %`. */
export function formatShare(share: number): string {
  return `${significant(share * 100)} %`;
}

/** A count, with thousands apart: `formatCount(1234567)` is `1,234,567`. */
export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

/** A number with so many significant digits, in plain notation. */
export function significant(value: number, digits = 3): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  // Rounded first: 99.96 has two digits before the point only until then.
  const magnitude = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
  const places = Math.max(0, digits - 1 - magnitude);
  return places > 12 ? value.toPrecision(digits) : value.toFixed(places);
}

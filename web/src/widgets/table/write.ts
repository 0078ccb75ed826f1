/** Cells as text: as the table shows them, and as other programs read them. */
import { named } from "../../data/names";
import { formatBytes, formatCount, formatNs, formatShare, significant } from "../../data/quantity";
import type { Cell, Column } from "./model";

const PREFIXES: readonly (readonly [number, string])[] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];
const PARTS_OF_PATH = 2;
/** Below it a share is not told apart, as in the static part. */
const LEAST_SHARE = 0.001;

/** A cell as it is shown; `–` where there is no value. */
export function shown(column: Column, value: Cell): string {
  if (value === null || (typeof value === "number" && Number.isNaN(value))) return "–";
  if (typeof value === "object") return value.map((one) => significant(one)).join(" ");
  if (typeof value === "string") return value === "" && !column.key.endsWith("name") ? "" : named(column.kind === "place" ? shortPlace(value) : value);
  return quantity(column, value);
}

/** A cell without loss: the number itself, or the whole text. */
export function exact(value: Cell): string | number {
  if (value === null) return "";
  return typeof value === "object" ? value.join(" ") : value;
}

/** The unit in which `exact` gives a column's numbers. */
export function unitOf(column: Column): string {
  switch (column.kind) {
    case "ns":
      return "ns";
    case "bytes":
      return "B";
    default:
      return column.unit ?? "";
  }
}

/** The end of a long path: `…/model/layers.py:12 forward`. */
export function shortPlace(place: string): string {
  const parts = place.split("/");
  return parts.length <= PARTS_OF_PATH + 1 ? place : `…/${parts.slice(-PARTS_OF_PATH).join("/")}`;
}

/** A rate with an SI prefix: `formatRate(3.2e12, "FLOP/s")` is `3.20 TFLOP/s`. */
export function formatRate(value: number, unit: string): string {
  const [scale, prefix] = PREFIXES.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  const gap = prefix !== "" && /^[a-z]/.test(unit) ? " " : "";
  return `${significant(value / scale)} ${prefix}${gap}${unit}`.trimEnd();
}

function quantity(column: Column, value: number): string {
  switch (column.kind) {
    case "ns":
      return value === 0 ? "0" : formatNs(value);
    case "bytes":
      return formatBytes(value);
    case "count":
      return formatCount(value);
    case "share":
      return value > 0 && value < LEAST_SHARE ? "< 0.1 %" : formatShare(value);
    case "rate":
      return value === 0 ? "0" : formatRate(value, column.unit ?? "");
    case "number":
      return `${significant(value)}${column.unit === undefined ? "" : ` ${column.unit}`}`;
    default:
      return String(value);
  }
}

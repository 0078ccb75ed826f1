/** The memory block as Python writes it (`report/payloads/memory*.py`), and questions to it that need no browser. */
import { cumulative } from "../../data/columns";
import { formatShare } from "../../data/quantity";

export interface Category {
  readonly name: string;
  readonly slot: number;
  readonly meaning: string;
  readonly peak_bytes: number;
  readonly share: number;
  readonly predicted_bytes: number | null;
}

export interface PhaseSpan {
  readonly name: string;
  readonly first: number;
  readonly last: number;
}

export interface Mark {
  readonly point: number;
  readonly kind: "failed" | "emptied" | "refused";
  readonly text: string;
}

/** Columns of running differences. */
export interface Course {
  readonly event_steps: readonly number[];
  readonly time_us_steps: readonly number[];
  readonly layers: readonly { readonly name: string; readonly steps: readonly number[] }[];
  readonly reserved_steps: readonly number[];
  readonly phases: readonly PhaseSpan[];
  readonly peak: number;
  readonly peak_bytes: number;
  readonly marks: readonly Mark[];
}

export interface HeldNode {
  readonly parent: number;
  readonly kind: "whole" | "category" | "module" | "line" | "instance" | "rest";
  readonly name: string;
  readonly bytes: number;
  readonly count: number;
  readonly category: string;
  readonly note: string;
}

/** Columns of equal length; `node` says where in the tree a place stands. */
export type HeldPlaces = Readonly<Record<string, readonly (string | number | null)[]>> & {
  readonly node: readonly number[];
  readonly bytes: readonly number[];
};

export interface Holding {
  readonly label: string;
  readonly nodes: readonly HeldNode[];
  readonly places: HeldPlaces;
  readonly mixed: boolean;
}

/** A whole and its parts. */
export interface Bar {
  readonly label: string;
  readonly note: string;
  readonly total_bytes: number;
  readonly pieces: readonly { readonly name: string; readonly slot: number; readonly bytes: number }[];
}

export interface GrowthLine {
  readonly steps: readonly number[];
  readonly bytes: readonly number[];
  readonly low_bytes: readonly number[];
  readonly high_bytes: readonly number[];
}

export interface HeldSite {
  readonly place: string;
  readonly source: string;
  readonly bytes_per_step: number;
  readonly kind: string;
  readonly holder: string;
  readonly holder_place: string;
  readonly container: string;
  readonly root: string;
  readonly chain: readonly string[];
  readonly graph: string;
  readonly every: string;
  readonly fix: string;
}

export interface LeakSeries {
  readonly verdict: string;
  readonly sentence: string;
  readonly grows: boolean;
  readonly warmup_steps: number;
  readonly steps: readonly number[];
  readonly live_bytes: readonly number[];
  readonly line: GrowthLine | null;
  readonly sites: readonly HeldSite[];
  readonly more_sites: number;
}

export interface MemoryPart {
  readonly label: string;
  readonly peak_bytes: number;
  readonly peak_said: string;
  readonly ledger: readonly Category[];
  readonly course: Course | null;
  readonly holdings: readonly Holding[];
  readonly peaks: readonly Bar[];
  readonly fragments: readonly Bar[];
  readonly leak: LeakSeries | null;
  readonly missing: readonly string[];
}

export interface MemoryView {
  readonly parts: readonly MemoryPart[];
}

/** A layer with its values, one per point. */
export interface Layer {
  readonly name: string;
  readonly values: Float64Array;
}

/** A course with values instead of differences. */
export interface Points {
  readonly event: Float64Array;
  /** Seconds; null without a clock. */
  readonly time: Float64Array | null;
  readonly layers: readonly Layer[];
  /** Null without a caching allocator. */
  readonly reserved: Float64Array | null;
}

/** Undo the differences of a course. */
export function pointsOf(course: Course): Points {
  return {
    event: cumulative(course.event_steps),
    time: course.time_us_steps.length > 0 ? cumulative(course.time_us_steps).map((us) => us / 1e6) : null,
    layers: course.layers.map(({ name, steps }) => ({ name, values: cumulative(steps) })),
    reserved: course.reserved_steps.length > 0 ? cumulative(course.reserved_steps) : null,
  };
}

/** Layers on top of each other: the upper edge of each, the lowest first; hidden ones are left out. */
export function stacked(layers: readonly Layer[], hidden: ReadonlySet<string>): readonly Layer[] {
  let below: Float64Array | null = null;
  const shown: Layer[] = [];
  for (const { name, values } of layers) {
    if (hidden.has(name)) continue;
    const base: Float64Array | null = below;
    const top = values.map((value, i) => value + (base?.[i] ?? 0));
    shown.push({ name, values: top });
    below = top;
  }
  return shown;
}

/** The last point that is not beyond a value of the axis; the columns are ascending. */
export function pointAt(axis: ArrayLike<number>, value: number): number {
  let [low, high] = [0, axis.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((axis[middle] ?? Infinity) <= value) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

/** The phase of a point. */
export function phaseAt(phases: readonly PhaseSpan[], point: number): string | null {
  return phases.find(({ first, last }) => first <= point && point <= last)?.name ?? null;
}

/** Indices of the parts of a node, the largest first and what no place tells last. */
export function partsOf(nodes: readonly HeldNode[], of: number): readonly number[] {
  const parts = nodes.flatMap(({ parent }, i) => (parent === of ? [i] : []));
  const rank = (i: number): number => (nodes[i]?.kind === "rest" ? -1 : (nodes[i]?.bytes ?? 0));
  return parts.sort((a, b) => rank(b) - rank(a) || a - b);
}

/** Where opening a node leads: past parts that are the whole of what they are in. */
export function endOf(nodes: readonly HeldNode[], of: number): number {
  let end = of;
  for (let parts = partsOf(nodes, end); parts.length === 1; parts = partsOf(nodes, end)) end = parts[0] ?? end;
  return end;
}

/** A node and what it is a part of, the whole first. */
export function pathTo(nodes: readonly HeldNode[], of: number): readonly number[] {
  const path: number[] = [];
  for (let i = of; i >= 0 && path.length <= nodes.length; i = nodes[i]?.parent ?? -1) path.unshift(i);
  return path;
}

/** The places within a node, as columns. */
export function placesIn({ nodes, places }: Holding, of: number): Readonly<Record<string, readonly (string | number | null)[]>> {
  if (of === 0) return places;
  const kept = places.node.flatMap((node, i) => (pathTo(nodes, node).includes(of) ? [i] : []));
  return Object.fromEntries(Object.entries(places).map(([key, column]) => [key, kept.map((i) => column[i] ?? null)]));
}

/** Round values up to a size in bytes, at most so many: steps of 1, 2 or 5 of the unit that suits the largest. */
export function byteTicks(least: number, largest: number, most: number): readonly number[] {
  const extent = largest - least;
  if (!(extent > 0)) return [];
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(1, Math.abs(largest))) / 10));
  const rough = extent / unit / Math.max(1, most);
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find((factor) => factor * magnitude >= rough) ?? 10) * magnitude * unit;
  const first = Math.ceil(least / step - 1e-9);
  const count = Math.floor(largest / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, i) => (first + i) * step);
}

/** A share in per cent, as the static part writes it: next to nothing is no row of zeros. */
export function shareSaid(share: number): string {
  if (share === 0) return "0 %";
  return share < 0.001 ? "< 0.1 %" : formatShare(share);
}

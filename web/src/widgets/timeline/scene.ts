/** A rank's slices as typed arrays, decoded once from the columns in which they travel. */
import type { Axis } from "../../canvas/viewport";
import { cumulative } from "../../data/columns";
import { named } from "../../data/names";

/** The part of Python's `TraceView` that is drawn here. Times are nanoseconds since the origin. */
export interface TraceContent {
  readonly rank: number;
  readonly path: string;
  readonly origin_ns: number;
  readonly span_ns: number;
  readonly names: readonly string[];
  readonly kinds: readonly string[];
  readonly tracks: readonly TrackContent[];
  readonly steps: readonly { readonly name: string; readonly start_ns: number; readonly end_ns: number }[];
  readonly lanes: { readonly track: readonly number[]; readonly row: readonly number[]; readonly num_slices: readonly number[] };
  readonly labels: { readonly name: readonly number[]; readonly kind: readonly number[] };
  readonly slices: { readonly gap_ns: readonly number[]; readonly dur_ns: readonly number[]; readonly label: readonly number[] };
  readonly merged: { readonly slice: readonly number[]; readonly num_events: readonly number[]; readonly busy_ns: readonly number[] };
  readonly launches: { readonly slice: readonly number[]; readonly source: readonly number[] };
  readonly num_slices: number;
  /** Python frames that only pass their call on, and are no slices here. */
  readonly num_passing?: number;
  readonly notice: string | null;
}

export interface TrackContent {
  readonly name: string;
  readonly process: string;
  readonly is_device: boolean;
  readonly num_rows: number;
  readonly pid: string;
  readonly tid: string;
}

/** A row of a track: its slices are `first` up to before `last`, in order of time, without overlaps. */
export interface Lane {
  readonly track: number;
  readonly row: number;
  readonly first: number;
  readonly last: number;
}

/** Several short slices that are drawn as one. */
export interface Merged {
  readonly events: number;
  readonly busy: number;
}

/** Everything to draw. A slice is an index of the arrays, -1 for none. */
export interface Scene {
  readonly content: TraceContent;
  readonly axis: Axis;
  readonly count: number;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly label: Int32Array;
  readonly lanes: readonly Lane[];
  /** Lanes of each track, by row; holes where a row has none. */
  readonly rows: readonly (readonly (Lane | undefined)[])[];
  readonly merged: ReadonlyMap<number, Merged>;
  /** What share of its extent each slice is busy: below 1 where it stands for several, with gaps. */
  readonly share: Float32Array;
  /** Device work in order, and what launched each. */
  readonly work: Int32Array;
  readonly source: Int32Array;
}

const LEAST_NS = 20;
const MARGIN = 0.01;

/** Decode a rank's columns. */
export function sceneOf(content: TraceContent): Scene {
  const { gap_ns: gap, dur_ns: dur, label } = content.slices;
  const [start, end] = [new Float64Array(dur.length), new Float64Array(dur.length)];
  const lanes: Lane[] = [];
  const rows: (Lane | undefined)[][] = content.tracks.map(() => []);
  let slice = 0;
  content.lanes.num_slices.forEach((size, i) => {
    const lane = { track: content.lanes.track[i] ?? 0, row: content.lanes.row[i] ?? 0, first: slice, last: slice + size };
    for (let time = 0; slice < lane.last; slice++) {
      start[slice] = time += gap[slice] ?? 0;
      end[slice] = time += dur[slice] ?? 0;
    }
    lanes.push(lane);
    const held = rows[lane.track];
    if (held !== undefined) held[lane.row] = lane;
  });
  const { merged, launches } = content;
  const standing = [...cumulative(merged.slice)].map(
    (at, i) => [at, { events: merged.num_events[i] ?? 1, busy: merged.busy_ns[i] ?? 0 }] as const,
  );
  const share = new Float32Array(dur.length).fill(1);
  for (const [at, { busy }] of standing) share[at] = Math.min(busy / Math.max(dur[at] ?? 1, 1), 1);
  return {
    content,
    axis: axisOf(content, lanes, start, end),
    count: dur.length,
    start,
    end,
    label: Int32Array.from(label),
    lanes,
    rows,
    merged: new Map(standing),
    share,
    work: Int32Array.from(cumulative(launches.slice)),
    source: Int32Array.from(cumulative(launches.source)),
  };
}

/** From the first to the last moment, of the span and of all slices, with a little room on both sides. */
function axisOf(content: TraceContent, lanes: readonly Lane[], start: Float64Array, end: Float64Array): Axis {
  let [low, high] = [0, Math.max(content.span_ns, 1)];
  for (const lane of lanes) {
    low = Math.min(low, start[lane.first] ?? 0);
    high = Math.max(high, end[lane.last - 1] ?? 0);
  }
  const margin = (high - low) * MARGIN;
  return { start: low - margin, end: high + margin, least: Math.min(LEAST_NS, high - low) };
}

/** The first place in `[first, last)` whose value is at least so large; `last` when none is. */
export function lowerBound(values: { readonly [at: number]: number }, first: number, last: number, least: number): number {
  let [low, high] = [first, last];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first slice of a lane that ends after a moment; `lane.last` when none does. */
export function firstEndingAfter(scene: Scene, lane: Lane, moment: number): number {
  let at = lowerBound(scene.end, lane.first, lane.last, moment);
  while (at < lane.last && (scene.end[at] ?? 0) <= moment) at += 1;
  return at;
}

/** The slice at a moment, else the nearest one no farther away than the tolerance; -1 when there is none. */
export function sliceAt(scene: Scene, lane: Lane, moment: number, tolerance: number): number {
  const after = firstEndingAfter(scene, lane, moment);
  if (after < lane.last && (scene.start[after] ?? 0) <= moment) return after;
  const ahead = after < lane.last ? (scene.start[after] ?? 0) - moment : Infinity;
  const behind = after > lane.first ? moment - (scene.end[after - 1] ?? 0) : Infinity;
  if (Math.min(ahead, behind) > tolerance) return -1;
  return ahead < behind ? after : after - 1;
}

/** The lane of a slice. */
export function laneOf(scene: Scene, slice: number): Lane | undefined {
  let [low, high] = [0, scene.lanes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((scene.lanes[middle]?.last ?? 0) <= slice) low = middle + 1;
    else high = middle;
  }
  return scene.lanes[low];
}

/** A slice's name as it is shown. */
export function nameOf(scene: Scene, slice: number): string {
  return scene.content.names[scene.content.labels.name[scene.label[slice] ?? 0] ?? 0] ?? "";
}

/** The same for a reader; a slice may have no name at all. */
export function titleOf(scene: Scene, slice: number): string {
  return named(nameOf(scene, slice));
}

/** A slice's kind. */
export function kindOf(scene: Scene, slice: number): string {
  return scene.content.kinds[scene.content.labels.kind[scene.label[slice] ?? 0] ?? 0] ?? "";
}

/** The slice that launched another one; -1 when there is none. */
export function sourceOf(scene: Scene, slice: number): number {
  const at = lowerBound(scene.work, 0, scene.work.length, slice);
  return scene.work[at] === slice ? (scene.source[at] ?? -1) : -1;
}

/** What a slice launched, in order. */
export function launchedBy(scene: Scene, slice: number): number[] {
  const found: number[] = [];
  scene.source.forEach((source, i) => {
    if (source === slice) found.push(scene.work[i] ?? -1);
  });
  return found;
}

/** How long a slice's own work lasted: without gaps where it stands for several. */
export function busyOf(scene: Scene, slice: number): number {
  return scene.merged.get(slice)?.busy ?? (scene.end[slice] ?? 0) - (scene.start[slice] ?? 0);
}

/** How many events a slice stands for. */
export function eventsOf(scene: Scene, slice: number): number {
  return scene.merged.get(slice)?.events ?? 1;
}

/** What of a slice no slice below it takes up; null where what lies below is not told apart, or cannot nest. */
export function selfOf(scene: Scene, slice: number): number | null {
  const lane = laneOf(scene, slice);
  if (lane === undefined || scene.merged.has(slice) || scene.content.tracks[lane.track]?.is_device !== false) return null;
  const [start, end] = [scene.start[slice] ?? 0, scene.end[slice] ?? 0];
  const below = scene.rows[lane.track]?.[lane.row + 1];
  let self = end - start;
  if (below === undefined) return self;
  for (let at = firstEndingAfter(scene, below, start); at < below.last && (scene.start[at] ?? 0) < end; at++) {
    if (scene.merged.has(at) || (scene.start[at] ?? 0) < start || (scene.end[at] ?? 0) > end) return null;
    self -= (scene.end[at] ?? 0) - (scene.start[at] ?? 0);
  }
  return self;
}

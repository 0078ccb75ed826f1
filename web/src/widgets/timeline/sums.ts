/** What lies in a range, added up; and all slices of one name. */
import type { Range } from "../../canvas/viewport";
import { busyOf, eventsOf, firstEndingAfter, type Scene } from "./scene";

/** Slices of one kind in a range. */
export interface KindSum {
  readonly kind: string;
  readonly events: number;
  /** Time during which any of them ran, track by track: what nests in its own kind counts once. */
  readonly busy: number;
}

/** What each kind takes of a range, the most first. */
export function sumsByKind(scene: Scene, range: Range): KindSum[] {
  const { kinds, labels, tracks } = scene.content;
  const events = new Float64Array(kinds.length);
  const busy = new Float64Array(kinds.length);
  tracks.forEach((_, track) => {
    const pieces: [number, number][][] = kinds.map(() => []);
    for (const lane of scene.rows[track] ?? []) {
      if (lane === undefined) continue;
      for (let at = firstEndingAfter(scene, lane, range.start); at < lane.last; at++) {
        const [start, end] = [scene.start[at] ?? 0, scene.end[at] ?? 0];
        if (start >= range.end) break;
        const kind = labels.kind[scene.label[at] ?? 0] ?? 0;
        events[kind] = (events[kind] ?? 0) + eventsOf(scene, at);
        const [low, high] = [Math.max(start, range.start), Math.min(end, range.end)];
        const share = busyOf(scene, at) / Math.max(end - start, 1); // below 1 where it stands for several, with gaps
        pieces[kind]?.push([low, low + (high - low) * Math.min(share, 1)]);
      }
    }
    pieces.forEach((held, kind) => {
      busy[kind] = (busy[kind] ?? 0) + covered(held);
    });
  });
  return kinds
    .map((kind, i) => ({ kind, events: events[i] ?? 0, busy: busy[i] ?? 0 }))
    .filter((sum) => sum.events > 0)
    .sort((a, b) => b.busy - a.busy);
}

/** Length of the union of intervals. */
export function covered(pieces: [number, number][]): number {
  let [sum, reached] = [0, -Infinity];
  for (const [start, end] of pieces.sort((a, b) => a[0] - b[0])) {
    if (end <= reached) continue;
    sum += end - Math.max(start, reached);
    reached = end;
  }
  return sum;
}

/** All slices of one label. */
export interface Namesakes {
  readonly count: number;
  readonly sum: number;
  readonly least: number;
  readonly most: number;
}

/** Count and durations of the slices of a label. */
export function namesakesOf(scene: Scene, label: number): Namesakes {
  let [count, sum, least, most] = [0, 0, Infinity, 0];
  for (let slice = 0; slice < scene.count; slice++) {
    if (scene.label[slice] !== label) continue;
    const own = busyOf(scene, slice);
    count += eventsOf(scene, slice);
    sum += own;
    least = Math.min(least, own);
    most = Math.max(most, own);
  }
  return { count, sum, least: Math.min(least, most), most };
}

/** Where tracks and rows lie, from the top of all of them; a folded track shows its fullest row as a strip. */
import type { Lane, Scene } from "./scene";

export const RULER_PX = 34;
export const HEADER_PX = 20;
export const ROW_PX = 17;
const STRIP_PX = 8;
const GAP_PX = 6;

/** A track in its place. */
export interface Placed {
  readonly track: number;
  readonly top: number;
  readonly bottom: number;
  readonly folded: boolean;
  readonly rowPx: number;
  readonly lanes: readonly Lane[];
}

export interface Layout {
  readonly tracks: readonly Placed[];
  readonly height: number;
}

/** Place all tracks one below the other. */
export function layoutOf(scene: Scene, folded: ReadonlySet<number>): Layout {
  let top = 0;
  const tracks = scene.content.tracks.map((track, i): Placed => {
    const isFolded = folded.has(i);
    const rowPx = isFolded ? STRIP_PX : ROW_PX;
    const full = (scene.rows[i] ?? []).filter((lane) => lane !== undefined);
    const lanes = isFolded ? fullest(full) : full;
    const bottom = top + HEADER_PX + rowPx * (isFolded ? 1 : Math.max(track.num_rows, 1)) + GAP_PX;
    const placed = { track: i, top, bottom, folded: isFolded, rowPx, lanes };
    top = bottom;
    return placed;
  });
  return { tracks, height: top };
}

/** The lane with the most slices: the one that says when something ran. */
export function fullest(lanes: readonly Lane[]): Lane[] {
  const most = Math.max(...lanes.map(({ first, last }) => last - first));
  return lanes.filter(({ first, last }) => last - first === most).slice(0, 1);
}

/** The tracks that overlap `[top, bottom)`. */
export function tracksWithin(layout: Layout, top: number, bottom: number): Placed[] {
  return layout.tracks.filter((track) => track.bottom > top && track.top < bottom);
}

/** Where a row of a track begins; of a folded one all rows are one. */
export function rowTop(placed: Placed, row: number): number {
  return placed.top + HEADER_PX + (placed.folded ? 0 : row) * placed.rowPx;
}

/** The lane at a height; undefined between rows, on headers and where a row is empty. */
export function laneAt(layout: Layout, y: number): Lane | undefined {
  const placed = layout.tracks.find((track) => y >= track.top && y < track.bottom);
  if (placed === undefined || y < placed.top + HEADER_PX) return undefined;
  const row = Math.floor((y - placed.top - HEADER_PX) / placed.rowPx);
  return placed.folded ? placed.lanes[row] : placed.lanes.find((lane) => lane.row === row);
}

const WHOLE = 0.9;

/** How far to scroll past the callers of everything: rows above in which one slice fills nearly all of the time. */
export function pastCallers(scene: Scene, layout: Layout): number {
  const placed = layout.tracks[0];
  const most = (scene.axis.end - scene.axis.start) * WHOLE;
  const fills = ({ first, last }: Lane): boolean => {
    for (let slice = first; slice < last; slice++) if ((scene.end[slice] ?? 0) - (scene.start[slice] ?? 0) > most) return true;
    return false;
  };
  const above = placed?.lanes.findLastIndex(fills) ?? -1;
  const next = placed?.lanes[above + 1];
  return placed === undefined || above < 1 || next === undefined ? 0 : rowTop(placed, next.row - 1) - HEADER_PX;
}

/** How far to scroll so that a row can be seen: as it was, where it can already. */
export function scrollTo(layout: Layout, lane: Lane, scrolled: number, visible: number): number {
  const placed = layout.tracks[lane.track];
  if (placed === undefined) return scrolled;
  const top = rowTop(placed, lane.row);
  if (top - HEADER_PX >= scrolled && top + placed.rowPx <= scrolled + visible) return scrolled;
  return Math.max(0, Math.min(top - visible / 3, layout.height - visible));
}

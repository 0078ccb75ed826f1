/** A range of a horizontal axis in view, in the axis's own unit; pure, so that it can be tested without a browser. */

/** What is in view: from `start` to `end`, both within the whole. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** The axis: its whole extent, and the least extent that may fill the view. */
export interface Axis extends Range {
  readonly least: number;
}

/** A range that lies within the axis and is no smaller than its least extent. */
export function fitted(axis: Axis, { start, end }: Range): Range {
  const whole = axis.end - axis.start;
  const extent = Math.min(Math.max(end - start, Math.min(axis.least, whole)), whole);
  const centred = (start + end - extent) / 2;
  const from = Math.min(Math.max(end - start < extent ? centred : start, axis.start), axis.end - extent);
  return { start: from, end: from + extent };
}

/** Closer by a factor above 1, farther by one below, about a point that stays where it is. */
export function zoomed(axis: Axis, range: Range, factor: number, about: number): Range {
  const share = (about - range.start) / (range.end - range.start);
  const extent = Math.max((range.end - range.start) / factor, Math.min(axis.least, axis.end - axis.start));
  return fitted(axis, { start: about - share * extent, end: about + (1 - share) * extent });
}

/** Moved by a distance, as far as the axis goes. */
export function panned(axis: Axis, range: Range, distance: number): Range {
  return fitted(axis, { start: range.start + distance, end: range.end + distance });
}

/** Pixels from the left edge of a value. */
export function toPixels(range: Range, width: number, value: number): number {
  return ((value - range.start) / (range.end - range.start)) * width;
}

/** The value at pixels from the left edge. */
export function toValue(range: Range, width: number, pixels: number): number {
  return range.start + (pixels / width) * (range.end - range.start);
}

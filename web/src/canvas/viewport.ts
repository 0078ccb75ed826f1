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

/** Zoomed by two fingers about the value that was between them, which has moved by a share of the width. */
export function pinched(axis: Axis, range: Range, factor: number, about: number, shift: number): Range {
  const closer = zoomed(axis, range, factor, about);
  return panned(axis, closer, -shift * (closer.end - closer.start));
}

const ZOOM_STEP = 1.25;
const PAN_SHARE = 0.12;

/** The range after a key: W and S zoom about the middle, A and D or the arrows move, 0 shows all; null for other keys. */
export function keyed(axis: Axis, range: Range, key: string): Range | null {
  const middle = (range.start + range.end) / 2;
  const step = (range.end - range.start) * PAN_SHARE;
  switch (key.toLowerCase()) {
    case "w":
    case "+":
    case "=":
      return zoomed(axis, range, ZOOM_STEP, middle);
    case "s":
    case "-":
      return zoomed(axis, range, 1 / ZOOM_STEP, middle);
    case "a":
    case "arrowleft":
      return panned(axis, range, -step);
    case "d":
    case "arrowright":
      return panned(axis, range, step);
    case "0":
      return { start: axis.start, end: axis.end };
    default:
      return null;
  }
}

/** A range about a value or an interval that fills a share of the view. */
export function around(axis: Axis, { start, end }: Range, share = 0.6): Range {
  const extent = Math.max((end - start) / share, axis.least);
  const middle = (start + end) / 2;
  return fitted(axis, { start: middle - extent / 2, end: middle + extent / 2 });
}

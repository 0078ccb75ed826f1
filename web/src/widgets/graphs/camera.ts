/** What part of a drawing is in view, in two dimensions; pure. */

/** The drawing's point at the upper left corner of the view, and how many pixels one of its units takes. */
export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

/** Width and height. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** A rectangle of the drawing. */
export interface Frame {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

const CLOSEST = 3;
const LEGIBLE = 0.62;

/** Everything in view, but never larger than written. */
export function whole(drawing: Size, view: Size): Camera {
  const scale = Math.min(view.width / Math.max(drawing.width, 1), view.height / Math.max(drawing.height, 1), 1);
  return centred(drawing, view, { x: drawing.width / 2, y: drawing.height / 2 }, scale);
}

/** The beginning of the drawing, at a scale at which it can be read; everything where that fits. `top` is where its first box is. */
export function beginning(drawing: Size, view: Size, top = { x: drawing.width / 2, y: 0 }): Camera {
  const all = whole(drawing, view);
  if (all.scale >= LEGIBLE) return all;
  const scale = Math.min(Math.max(view.width / Math.max(drawing.width, 1), LEGIBLE), 1);
  const fits = drawing.width * scale <= view.width;
  const camera = centred(drawing, view, { x: fits ? drawing.width / 2 : top.x, y: 0 }, scale);
  return { ...camera, y: Math.max(top.y - 24 / scale, -8 / scale) };
}

/** A point of the drawing in the middle of the view. */
export function centred(_drawing: Size, view: Size, { x, y }: { readonly x: number; readonly y: number }, scale: number): Camera {
  return { x: x - view.width / 2 / scale, y: y - view.height / 2 / scale, scale };
}

/** Closer by a factor above 1 about a point of the view that stays where it is, in pixels; not closer or farther than makes sense. */
export function closer(camera: Camera, drawing: Size, view: Size, factor: number, x: number, y: number): Camera {
  const least = Math.min(whole(drawing, view).scale / 1.5, 1);
  const scale = Math.min(Math.max(camera.scale * factor, least), CLOSEST);
  return bounded({ x: camera.x + x / camera.scale - x / scale, y: camera.y + y / camera.scale - y / scale, scale }, drawing, view);
}

/** Moved by pixels of the view. */
export function moved(camera: Camera, drawing: Size, view: Size, x: number, y: number): Camera {
  return bounded({ ...camera, x: camera.x + x / camera.scale, y: camera.y + y / camera.scale }, drawing, view);
}

/** What is in view, and a view's half around it. */
export function inView(camera: Camera, view: Size, around = 0.5): Frame {
  const [width, height] = [view.width / camera.scale, view.height / camera.scale];
  return {
    left: camera.x - around * width,
    top: camera.y - around * height,
    right: camera.x + (1 + around) * width,
    bottom: camera.y + (1 + around) * height,
  };
}

/** Whether one frame lies within another. */
export function holds(outer: Frame, inner: Frame): boolean {
  return outer.left <= inner.left && outer.right >= inner.right && outer.top <= inner.top && outer.bottom >= inner.bottom;
}

/** Some of the drawing stays in view. */
function bounded(camera: Camera, drawing: Size, view: Size): Camera {
  const [width, height] = [view.width / camera.scale, view.height / camera.scale];
  const clamp = (value: number, least: number, most: number): number => Math.min(Math.max(value, least), Math.max(least, most));
  return {
    ...camera,
    x: clamp(camera.x, -width * 0.8, drawing.width - width * 0.2),
    y: clamp(camera.y, -height * 0.8, drawing.height - height * 0.2),
  };
}

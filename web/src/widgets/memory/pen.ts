/** Lines and words on a canvas. */
import { colour } from "../../canvas/theme";

/** The font of all charts. */
export function prepare(context: CanvasRenderingContext2D): void {
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
}

/** A line from one place to another. */
export function line(context: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  path(context, [[x1, y1], [x2, y2]]);
}

/** A line through several places. */
export function path(context: CanvasRenderingContext2D, corners: readonly (readonly [number, number])[]): void {
  context.beginPath();
  for (const [x, y] of corners) context.lineTo(x, y);
  context.stroke();
}

/** Words with the ground around them, so that they can be read on anything. */
export function write(context: CanvasRenderingContext2D, text: string, x: number, y: number, align: CanvasTextAlign, ink = "--ink"): void {
  context.textAlign = align;
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeStyle = colour("--ground");
  context.strokeText(text, x, y);
  context.lineWidth = 1;
  context.fillStyle = colour(ink);
  context.fillText(text, x, y);
}

/** Draws the slices of a lane: those in view only, and what is narrower than a pixel together. */
import { type Paint, paintOf } from "../../canvas/kinds";
import { colour } from "../../canvas/theme";
import type { Range } from "../../canvas/viewport";
import { named } from "../../data/names";
import type { Lit } from "./find";
import { firstEndingAfter, type Lane, type Scene } from "./scene";

/** What is in view and how. */
export interface Looks {
  readonly range: Range;
  readonly width: number;
  readonly lit: Lit;
}

const TEXT_PX = 26;
const CHARACTER_PX = 6.1;
const PADDING_PX = 4;
const GAP_PX = 0.5;
/** Opacity from fully busy down to hardly ever; and of what is not looked for. */
const ALPHAS = [1, 0.85, 0.7, 0.55, 0.4, 0.16];
const [FAINT, EMPTIEST, DIM] = [3, 4, 5];
const SOLID_SHARE = 0.9;

/** How a share of busy time looks: 0 solid, up to 4 nearly empty. */
export function shadeOf(share: number): number {
  if (share >= SOLID_SHARE) return 0;
  return 1 + Math.min(Math.floor((1 - share / SOLID_SHARE) * EMPTIEST), EMPTIEST - 1);
}

export const SLICE_FONT = "11px system-ui, sans-serif";

/** Rectangles and words that are gathered first, so that those of one colour are drawn in one go. */
export class Batches {
  private readonly boxes = new Map<number, number[]>();
  private readonly words: { readonly text: string; readonly x: number; readonly y: number; readonly room: number; readonly kind: number }[] = [];

  constructor(private readonly scene: Scene) {}

  /** Gather a lane's slices in view, on a row of the canvas. */
  add(lane: Lane, top: number, height: number, { range, width, lit }: Looks): void {
    const { start, end, label, share } = this.scene;
    const scale = width / (range.end - range.start);
    let at = firstEndingAfter(this.scene, lane, range.start);
    let [over, overEdge] = [0, -1]; // what the last mark reaches into the next pixel
    while (at < lane.last) {
      const from = ((start[at] ?? 0) - range.start) * scale;
      if (from >= width) break;
      const to = ((end[at] ?? 0) - range.start) * scale;
      if (to - from >= 1) {
        this.box(at, from, to, top, height, lit, width);
        at += 1;
        continue;
      }
      // Narrower than a pixel: all that begins on this pixel is one mark, of the longest that is looked for.
      const edge = Math.floor(from) + 1;
      let [best, bestPx, filled] = [at, -1, overEdge === edge ? over : 0];
      [over, overEdge] = [0, edge + 1];
      for (; at < lane.last; at++) {
        const left = ((start[at] ?? 0) - range.start) * scale;
        const right = ((end[at] ?? 0) - range.start) * scale;
        if (left >= edge || right - left >= 1) break;
        filled += (Math.min(right, edge) - left) * (share[at] ?? 1);
        over = Math.max(right - edge, 0) * (share[at] ?? 1);
        const weight = right - left + (lit?.[label[at] ?? 0] ?? 0);
        if (weight > bestPx) [best, bestPx] = [at, weight];
      }
      this.put(best, edge - 1, top, 1, height, Math.min(shadeOf(filled), FAINT), lit);
    }
  }

  private box(slice: number, from: number, to: number, top: number, height: number, lit: Lit, width: number): void {
    const [left, right] = [Math.max(from, -1), Math.min(to, width + 1)];
    const gap = right - left > 3 ? GAP_PX : 0;
    const shade = shadeOf(this.scene.share[slice] ?? 1);
    this.put(slice, left, top, right - left - gap, height, shade, lit);
    const room = Math.min(right, width) - Math.max(left, 0);
    if (room < TEXT_PX || height < 12) return;
    const { labels, names } = this.scene.content;
    const label = this.scene.label[slice] ?? 0;
    const name = names[labels.name[label] ?? 0] ?? "";
    const text = fitted(named(name), Math.floor((room - 2 * PADDING_PX) / CHARACTER_PX));
    if (text === "" || lit?.[label] === 0) return;
    const place = { x: Math.max(left, 0) + PADDING_PX, y: top + height / 2, room: room - 1.5 * PADDING_PX };
    this.words.push({ text, ...place, kind: shade > 1 ? -1 : (labels.kind[label] ?? 0) });
  }

  private put(slice: number, x: number, y: number, width: number, height: number, shade: number, lit: Lit): void {
    const label = this.scene.label[slice] ?? 0;
    const kind = this.scene.content.labels.kind[label] ?? 0;
    const key = kind * ALPHAS.length + (lit?.[label] === 0 ? DIM : shade);
    const boxes = this.boxes.get(key);
    if (boxes === undefined) this.boxes.set(key, [x, y, width, height]);
    else boxes.push(x, y, width, height);
  }

  /** Draw all that was gathered. */
  draw(context: CanvasRenderingContext2D): void {
    const paints = this.scene.content.kinds.map(paintOf);
    for (const [key, boxes] of [...this.boxes].sort((a, b) => (b[0] % ALPHAS.length) - (a[0] % ALPHAS.length))) {
      context.fillStyle = (paints[Math.floor(key / ALPHAS.length)] as Paint).fill;
      context.globalAlpha = ALPHAS[key % ALPHAS.length] ?? 1;
      for (let i = 0; i < boxes.length; i += 4) {
        context.fillRect(boxes[i] ?? 0, boxes[i + 1] ?? 0, boxes[i + 2] ?? 0, boxes[i + 3] ?? 0);
      }
    }
    context.globalAlpha = 1;
    context.font = SLICE_FONT;
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const { text, x, y, room, kind } of this.words) {
      context.fillStyle = paints[kind]?.ink ?? colour("--ink"); // on a light shade a kind's own ink is hard to read
      context.fillText(text, x, y + 0.5, room);
    }
  }
}

/** A name in so many characters; empty when hardly anything would be left. */
export function fitted(name: string, characters: number): string {
  if (name.length <= characters) return name;
  return characters < 4 ? "" : `${name.slice(0, characters - 1)}…`;
}

/** Draws the rows in view. Boxes too narrow to be seen are drawn together, so that a frame costs no more than its pixels. */
import type { Frame } from "../../canvas/Surface";
import { toPixels } from "../../canvas/viewport";
import { changeOf } from "./change";
import { cutTo, label, slot } from "./label";
import { firstEndingAfter, type Layout } from "./layout";
import type { Paint, Palette } from "./palette";
import { at, nameOf, sideAt, type Tree, type Weight } from "./tree";

/** Height of a row in CSS pixels. */
export const ROW = 20;

const NARROW = 0.5;
const LABELLED = 26;
const DIMMED = 0.25;
const PADDING = 4;

/** What is drawn. */
export interface Scene {
  readonly tree: Tree;
  /** The tree before it was turned about a name; shares are of this. */
  readonly whole: Tree;
  readonly layout: Layout;
  readonly weight: Weight;
  /** 1 for each name that a search found; null without a search. */
  readonly found: Uint8Array | null;
  readonly selected: number;
}

/** Draw a scene that is scrolled down by so many pixels. */
export function paint(frame: Frame, scene: Scene, colours: Palette, scrolled: number): void {
  const { context, height } = frame;
  context.font = colours.font;
  context.textBaseline = "middle";
  const first = Math.max(0, Math.floor(scrolled / ROW));
  const last = Math.min(scene.layout.rows.length - 1, Math.floor((scrolled + height) / ROW));
  for (let row = first; row <= last; row++) paintRow(frame, scene, colours, row, row * ROW - scrolled);
  context.globalAlpha = 1;
  outline(frame, scene, colours, scrolled);
}

function paintRow(frame: Frame, scene: Scene, colours: Palette, row: number, y: number): void {
  const { layout, found, tree } = scene;
  const { context, width, range } = frame;
  const nodes = layout.rows[row];
  if (nodes === undefined) return;
  const run = { from: 0, to: -1, found: false };
  const flush = (): void => {
    if (run.to <= run.from) return;
    context.globalAlpha = found !== null && !run.found ? DIMMED : 1;
    context.fillStyle = colours.merged;
    context.fillRect(run.from, y, Math.max(run.to - run.from, NARROW), ROW - 1);
    run.to = -1;
  };
  for (let i = firstEndingAfter(layout, nodes, range.start); i < nodes.length; i++) {
    const node = at(nodes, i);
    const start = at(layout.start, node);
    if (start >= range.end) break;
    const from = toPixels(range, width, start);
    const to = toPixels(range, width, start + at(layout.size, node));
    const isFound = found === null || found[at(tree.name, node)] === 1;
    if (to - from < NARROW) {
      if (run.to < 0 || from - run.to > NARROW) {
        flush();
        Object.assign(run, { from, found: false });
      }
      run.to = to;
      run.found ||= isFound;
      continue;
    }
    flush();
    context.globalAlpha = isFound ? 1 : DIMMED;
    paintBox(frame, scene, colours, { node, y, from: Math.max(from, 0), to: Math.min(to, width) });
  }
  flush();
}

interface Box {
  readonly node: number;
  readonly y: number;
  readonly from: number;
  readonly to: number;
}

function paintBox({ context }: Frame, scene: Scene, colours: Palette, { node, y, from, to }: Box): void {
  const { fill, text } = paintOf(scene, colours, node);
  context.fillStyle = fill;
  context.fillRect(from, y, Math.max(to - from - (to - from > 3 ? 1 : 0), NARROW), ROW - 1);
  if (to - from < LABELLED) return;
  const said = cutTo(boxText(scene, node), to - from - 2 * PADDING, (part) => context.measureText(part).width);
  context.fillStyle = text;
  context.fillText(said, from + PADDING, y + ROW / 2);
}

function paintOf(scene: Scene, colours: Palette, node: number): Paint {
  const { tree, weight } = scene;
  if (tree.sides.length < 2) return colours.kinds[slot(tree, node)] ?? colours.levels[0];
  return colours.levels[changeOfNode(tree, weight, node).level];
}

function boxText({ tree, weight }: Scene, node: number): string {
  const said = label(nameOf(tree, node));
  return tree.sides.length < 2 ? said : `${changeOfNode(tree, weight, node).text}  ${said}`;
}

/** How a node's total changed, each side divided by its steps. */
export function changeOfNode(tree: Tree, weight: Weight, node: number): ReturnType<typeof changeOf> {
  const [before, after] = [0, 1].map((i) => {
    const side = sideAt(tree, i);
    return at(side.total[weight], node) / side.divideBy;
  });
  return changeOf(before ?? 0, after ?? 0);
}

function outline({ context, width, range }: Frame, { layout, selected }: Scene, colours: Palette, scrolled: number): void {
  const row = at(layout.row, selected);
  if (row < 0 || at(layout.size, selected) <= 0) return;
  const start = at(layout.start, selected);
  const from = Math.max(toPixels(range, width, start), 0);
  const to = Math.min(toPixels(range, width, start + at(layout.size, selected)), width);
  if (to < from) return;
  context.strokeStyle = colours.ground;
  context.lineWidth = 4;
  const box = [from + 1, row * ROW - scrolled + 1, Math.max(to - from - 3, 1), ROW - 3] as const;
  context.strokeRect(...box);
  context.strokeStyle = colours.outline;
  context.lineWidth = 2;
  context.strokeRect(...box);
}

/** What boxes are coloured by, with a legend and a word in the box, so that the colour never stands alone. */
import { formatBytes } from "../../data/quantity";
import type { GraphContent, GraphMark } from "./content";
import type { Scene, SceneBox } from "./scene";

/** Ways to colour. */
export const OVERLAYS = ["kind", "dtype", "bytes", "group", "marks"] as const;
export type Overlay = (typeof OVERLAYS)[number];

/** One entry of a legend; `slot` is a colour of the style sheet, such as `phase-2`. */
export interface Key {
  readonly name: string;
  readonly slot: string;
  readonly count: number;
}

/** Colours of the boxes of a drawing, in their order, and what they mean. */
export interface Painted {
  readonly slots: readonly string[];
  /** What stands in the second line of each box; null: as it is. */
  readonly words: readonly (string | null)[];
  readonly keys: readonly Key[];
  /** Colours of the operations in each box, with their shares; empty where a box is one operation. */
  readonly mixtures: readonly Mixture[];
}

/** Colours and shares, the largest first. */
export type Mixture = readonly (readonly [slot: string, share: number])[];

const KINDS: Readonly<Record<string, string>> = {
  matmul: "phase-0",
  convolution: "phase-6",
  attention: "phase-7",
  normalization: "phase-4",
  reduction: "phase-8",
  pooling: "phase-8",
  pointwise: "phase-2",
  view: "phase-5",
  copy: "phase-1",
  creation: "phase-1",
  random: "phase-3",
  collective: "phase-3",
  triton: "phase-3",
  symbol: "phase-5",
};
const PLAIN = "soft";
const CYCLE = ["phase-2", "phase-0", "phase-4", "phase-3", "phase-1", "phase-8", "phase-6", "phase-7"] as const;
const MOST_KEYS = 12;
const MARK_SLOTS: Readonly<Record<GraphMark["kind"], string>> = { break: "bad", recompile: "cold", finding: "link" };

/** Colour the boxes of a drawing. */
export function paint(
  graph: GraphContent,
  scene: Scene,
  overlay: Overlay,
  marks: ReadonlyMap<number, readonly GraphMark[]>,
): Painted {
  switch (overlay) {
    case "kind":
      return byKind(graph, scene);
    case "dtype":
      return byName(scene, (box) => box.dtype || "–", cycling(scene, (box) => box.dtype), (box) => box.dtype || null);
    case "group":
      return byName(scene, (box) => box.group || "–", cycling(scene, (box) => box.group), (box) => box.group || null);
    case "bytes":
      return byBytes(scene);
    case "marks":
      return byMarks(scene, marks);
  }
}

/** The marks of a box, each once. */
export function marksOf(box: SceneBox, marks: ReadonlyMap<number, readonly GraphMark[]>): GraphMark[] {
  return [...new Set(box.units.flatMap((unit) => marks.get(unit) ?? []))];
}

/** A legend of operations: boxes that hold several show what they are made of. */
function byKind(graph: GraphContent, scene: Scene): Painted {
  const slot = (name: string): string => KINDS[name] ?? PLAIN;
  const counts = new Map<string, number>();
  const mixtures = scene.boxes.map((box): Mixture => {
    const own = new Map<string, number>();
    for (const unit of box.units) {
      const kind = graph.texts[graph.units.boxes.kind[unit] ?? 0] || "other";
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      own.set(slot(kind), (own.get(slot(kind)) ?? 0) + 1);
    }
    if (box.units.length < 2) return [];
    return [...own].sort(([, a], [, b]) => b - a).map(([name, count]) => [name, count / box.units.length]);
  });
  const keys = [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => ({ name, slot: slot(name), count }));
  return { slots: scene.boxes.map((box) => slot(box.kind)), words: scene.boxes.map(() => null), keys, mixtures };
}

function byName(
  scene: Scene,
  name: (box: SceneBox) => string,
  slot: (name: string) => string,
  word: (box: SceneBox) => string | null,
): Painted {
  const counts = new Map<string, number>();
  for (const box of scene.boxes) counts.set(name(box), (counts.get(name(box)) ?? 0) + 1);
  const ordered = [...counts].sort(([, a], [, b]) => b - a);
  const keys = ordered.slice(0, MOST_KEYS).map(([key, count]) => ({ name: key, slot: slot(key), count }));
  const rest = ordered.slice(MOST_KEYS);
  if (rest.length > 0) keys.push({ name: `+${rest.length}`, slot: PLAIN, count: rest.reduce((sum, [, count]) => sum + count, 0) });
  return { slots: scene.boxes.map((box) => slot(name(box))), words: scene.boxes.map(word), keys, mixtures: [] };
}

/** Colours in turn, in the order in which names are met; nothing has no colour. */
function cycling(scene: Scene, name: (box: SceneBox) => string): (name: string) => string {
  const slots = new Map<string, string>();
  for (const box of scene.boxes) {
    const key = name(box);
    if (key !== "" && !slots.has(key)) slots.set(key, CYCLE[slots.size % CYCLE.length] ?? PLAIN);
  }
  return (key) => slots.get(key) ?? PLAIN;
}

const STEPS = 5;

function byBytes(scene: Scene): Painted {
  const largest = Math.max(...scene.boxes.map((box) => box.numBytes), 1);
  const least = largest / 4 ** (STEPS - 1);
  const step = (bytes: number): number => Math.max(0, Math.min(STEPS - 1, Math.floor(Math.log(bytes / least) / Math.log(4) + 1e-9)));
  const slot = (box: SceneBox): string => (box.numBytes <= 0 ? "heat-none" : `heat-${step(box.numBytes)}`);
  const slots = scene.boxes.map(slot);
  const keys = Array.from({ length: STEPS }, (_, i) => STEPS - 1 - i)
    .map((i) => ({
      name: i === 0 ? `< ${formatBytes(least * 4)}` : `≥ ${formatBytes(least * 4 ** i)}`,
      slot: `heat-${i}`,
      count: slots.filter((one) => one === `heat-${i}`).length,
    }))
    .filter(({ count }) => count > 0);
  return { slots, words: scene.boxes.map((box) => (box.numBytes < 0 ? null : formatBytes(box.numBytes))), keys, mixtures: [] };
}

function byMarks(scene: Scene, marks: ReadonlyMap<number, readonly GraphMark[]>): Painted {
  const first = scene.boxes.map((box) => marksOf(box, marks)[0]);
  const kinds = ["break", "recompile", "finding"] as const;
  return {
    slots: first.map((mark) => (mark === undefined ? PLAIN : MARK_SLOTS[mark.kind])),
    words: first.map((mark) => mark?.text ?? null),
    keys: kinds
      .map((kind) => ({ name: kind, slot: MARK_SLOTS[kind], count: first.filter((mark) => mark?.kind === kind).length }))
      .filter(({ count }) => count > 0),
    mixtures: [],
  };
}

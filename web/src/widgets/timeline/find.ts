/** Slices that the reader looks for: by a part of their name, or by kind. */
import { eventsOf, nameOf, type Scene } from "./scene";

/** Which labels are looked for; null when nothing is. */
export type Lit = Uint8Array | null;

/** Labels whose name holds the text (in small or capital letters) and whose kind is the wanted one. */
export function litBy(scene: Scene, text: string, kind: string | null): Lit {
  const wanted = text.trim().toLowerCase();
  if (wanted === "" && kind === null) return null;
  const { names, kinds, labels } = scene.content;
  const named = names.map((name) => name.toLowerCase().includes(wanted));
  return Uint8Array.from(labels.name, (name, i) =>
    named[name] === true && (kind === null || kinds[labels.kind[i] ?? 0] === kind) ? 1 : 0,
  );
}

/** The slices of these labels, in order of start. */
export function matchesOf(scene: Scene, lit: Lit): Int32Array {
  if (lit === null) return new Int32Array(0);
  return inTime(scene).filter((slice) => lit[scene.label[slice] ?? 0] === 1);
}

/** How many slices of the trace the drawn ones stand for. */
export function standFor(scene: Scene, slices: Int32Array): number {
  return slices.reduce((sum, slice) => sum + eventsOf(scene, slice), 0);
}

const MIXED = "(small)";

/** How many slices are drawn together with ones of other names, so that a search cannot tell whether they match. */
export function unsearched(scene: Scene): number {
  let sum = 0;
  for (const [slice, { events }] of scene.merged) if (nameOf(scene, slice) === MIXED) sum += events;
  return sum;
}

/** The match after the selected slice, or before it; from the ends it goes on at the other one. -1 when there is none. */
export function nextMatch(scene: Scene, matches: Int32Array, selected: number, from: number, back: boolean): number {
  if (matches.length === 0) return -1;
  const held = selected < 0 ? -1 : matches.indexOf(selected);
  if (held >= 0) return matches[(held + (back ? matches.length - 1 : 1)) % matches.length] ?? -1;
  const moment = selected < 0 ? from : (scene.start[selected] ?? from);
  const after = matches.findIndex((slice) => (scene.start[slice] ?? 0) >= moment);
  if (back) return matches[(after < 0 ? matches.length : after || matches.length) - 1] ?? -1;
  return matches[after < 0 ? 0 : after] ?? -1;
}

const orders = new WeakMap<Scene, Int32Array>();

/** All slices in order of start; sorted when it is first asked for. */
function inTime(scene: Scene): Int32Array {
  let order = orders.get(scene);
  if (order === undefined) {
    order = Int32Array.from({ length: scene.count }, (_, i) => i);
    order.sort((a, b) => (scene.start[a] ?? 0) - (scene.start[b] ?? 0) || a - b);
    orders.set(scene, order);
  }
  return order;
}

/** The longest slice of exactly this name; -1 when there is none. */
export function longestNamed(scene: Scene, name: string): number {
  const { names, labels } = scene.content;
  let [best, extent] = [-1, -1];
  for (let slice = 0; slice < scene.count; slice++) {
    const own = (scene.end[slice] ?? 0) - (scene.start[slice] ?? 0);
    if (own > extent && names[labels.name[scene.label[slice] ?? 0] ?? 0] === name) [best, extent] = [slice, own];
  }
  return best;
}

/** What of the timeline stands in the address: a range, what is selected, and what is looked for. */
import { around, fitted, type Range } from "../../canvas/viewport";
import { longestNamed } from "./find";
import type { Scene } from "./scene";

/** What a link can say; times are nanoseconds since the origin of the rank. */
export interface Place {
  readonly range: Range;
  readonly selected: number;
  readonly find: string;
}

type Parameters = Readonly<Record<string, string>>;

/** The place that an address names: `from`, `to`, `select` (a number of a slice, or a name: the longest of it), `find`. */
export function placeOf(scene: Scene, parameters: Parameters): Place {
  const { axis } = scene;
  const whole = { start: axis.start, end: axis.end };
  const [from, to] = [numberOf(parameters["from"]), numberOf(parameters["to"])];
  const named = from !== null || to !== null;
  const [start, end] = [from ?? axis.start, to ?? axis.end];
  const selected = sliceOf(scene, parameters["select"]);
  const about =
    selected >= 0 ? around(axis, { start: scene.start[selected] ?? 0, end: scene.end[selected] ?? 0 }, 0.1) : whole;
  return {
    range: named && end > start ? fitted(axis, { start, end }) : about,
    selected,
    find: parameters["find"] ?? "",
  };
}

/** The parameters of a place; what is as at first is left out. */
export function parametersOf(scene: Scene, { range, selected, find }: Place): Record<string, string> {
  const { axis } = scene;
  const parameters: Record<string, string> = {};
  if (range.start > axis.start || range.end < axis.end) {
    parameters["from"] = String(Math.round(range.start));
    parameters["to"] = String(Math.round(range.end));
  }
  if (selected >= 0) parameters["select"] = String(selected);
  if (find !== "") parameters["find"] = find;
  return parameters;
}

function numberOf(text: string | undefined): number | null {
  const value = text === undefined || text.trim() === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

function sliceOf(scene: Scene, text: string | undefined): number {
  if (text === undefined || text === "") return -1;
  if (!/^\d+$/.test(text)) return longestNamed(scene, text);
  const slice = Number(text);
  return slice < scene.count ? slice : -1;
}

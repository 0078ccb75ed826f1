/** What of the timeline stands in the address: a range, what is selected, and what is looked for. */
import { around, type Axis, fitted, type Range } from "../../canvas/viewport";
import { longestNamed } from "./find";
import type { Scene } from "./scene";

/** What a link can say; times are nanoseconds since the origin of the rank. */
export interface Place {
  readonly range: Range;
  readonly selected: number;
  readonly find: string;
  /** The only kind that is lit; null for all. */
  readonly kind: string | null;
  readonly measured: Range | null;
  /** Tracks of which only the name is shown. */
  readonly folded: ReadonlySet<number>;
}

type Parameters = Readonly<Record<string, string>>;

/**
 * The place that an address names: `from` and `to`, `select` (a number of a slice, or a name: the longest of it), `find`,
 * `kind`, `measure=from..to`, `fold` (numbers of tracks). What makes no sense in this recording is as if it were absent.
 */
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
    kind: scene.content.kinds.find((kind) => kind === parameters["kind"]) ?? null,
    measured: measuredOf(axis, parameters["measure"]),
    folded: new Set((parameters["fold"] ?? "").split(",").filter((track) => isTrack(scene, track)).map(Number)),
  };
}

/** Those parameters of an address that say nothing about this recording, as they stand there. */
export function wrongIn(scene: Scene, parameters: Parameters): string[] {
  const { from, to, select, kind, measure, fold } = parameters;
  const wrong: Record<string, string | undefined> = {};
  const [start, end] = [numberOf(from), numberOf(to)];
  if (start === null || (end !== null && end <= start)) wrong["from"] = from;
  if (end === null || (start !== null && end <= start)) wrong["to"] = to;
  if (sliceOf(scene, select) < 0) wrong["select"] = select;
  if (!scene.content.kinds.includes(kind ?? "")) wrong["kind"] = kind;
  if (measuredOf(scene.axis, measure) === null) wrong["measure"] = measure;
  if (fold?.split(",").every((track) => isTrack(scene, track)) === false) wrong["fold"] = fold;
  return Object.entries(wrong).flatMap(([key, value]) => (value === undefined || value === "" ? [] : [`${key}=${value}`]));
}

function isTrack(scene: Scene, text: string): boolean {
  return /^\d+$/.test(text) && Number(text) < scene.content.tracks.length;
}

function measuredOf(axis: Axis, text: string | undefined): Range | null {
  const [start = null, end = null, ...more] = (text ?? "").split("..").map(numberOf);
  if (start === null || end === null || more.length > 0 || end <= Math.max(start, axis.start) || start >= axis.end) return null;
  return { start: Math.max(start, axis.start), end: Math.min(end, axis.end) };
}

/** The parameters of a place; what is as at first is left out. */
export function parametersOf(scene: Scene, { range, selected, find, kind, measured, folded }: Place): Record<string, string> {
  const { axis } = scene;
  const parameters: Record<string, string> = {};
  if (range.start > axis.start || range.end < axis.end) {
    parameters["from"] = String(Math.round(range.start));
    parameters["to"] = String(Math.round(range.end));
  }
  if (selected >= 0) parameters["select"] = String(selected);
  if (find !== "") parameters["find"] = find;
  if (kind !== null) parameters["kind"] = kind;
  if (measured !== null) parameters["measure"] = `${Math.round(measured.start)}..${Math.round(measured.end)}`;
  if (folded.size > 0) parameters["fold"] = [...folded].sort((a, b) => a - b).join(",");
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

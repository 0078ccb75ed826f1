/** A range of the timeline as Chrome JSON: for Perfetto, chrome://tracing, and for `pyrometer trace` to read back. */
import type { Range } from "../canvas/viewport";
import { eventsOf, firstEndingAfter, kindOf, type Lane, nameOf, type Scene } from "../widgets/timeline/scene";

/** Categories as the profiler writes them; kinds that are not here are their own category. */
const CATEGORIES: Readonly<Record<string, string>> = {
  communication: "kernel",
  memcpy: "gpu_memcpy",
  memset: "gpu_memset",
  runtime: "cuda_runtime",
  driver: "cuda_driver",
  sync: "cuda_sync",
  device_event: "cuda_event",
};

/** The slices that overlap a range, whole, with names of their tracks and the launches between them. */
export function perfettoJson(scene: Scene, range: Range): string {
  const { content } = scene;
  const first = Math.floor(Math.min(scene.axis.start, 0)); // so that no time is negative
  const inside = new Set<number>();
  const correlations = correlationsOf(scene);
  const lines: string[] = names(scene);
  for (const lane of scene.lanes) {
    for (let at = firstEndingAfter(scene, lane, range.start); at < lane.last; at++) {
      if ((scene.start[at] ?? 0) >= range.end) break;
      inside.add(at);
      lines.push(complete(scene, lane, at, correlations.get(at), first));
    }
  }
  lines.push(...flows(scene, inside, correlations, first));
  const head = {
    schemaVersion: 1,
    displayTimeUnit: "ns",
    distributedInfo: { rank: content.rank },
    pyrometer: { source: content.path, from_ns: range.start, to_ns: range.end, notice: content.notice },
  };
  return `${JSON.stringify(head).slice(0, -1)},"traceEvents":[\n${lines.join(",\n")}\n]}\n`;
}

/** The same number for a call and all that it launched, as the profiler gives them. */
function correlationsOf({ work, source }: Scene): Map<number, number> {
  const found = new Map<number, number>();
  source.forEach((call, i) => {
    const number = found.get(call) ?? i + 1;
    found.set(call, number);
    found.set(work[i] ?? -1, number);
  });
  return found;
}

function complete(scene: Scene, lane: Lane, at: number, correlation: number | undefined, first: number): string {
  const kind = kindOf(scene, at);
  const events = eventsOf(scene, at);
  const track = scene.content.tracks[lane.track];
  const args = {
    ...(correlation === undefined ? {} : { correlation }),
    ...(track?.is_device ? { device: id(track.pid), stream: id(track.tid) } : {}),
    ...(events > 1 ? { merged_slices: events } : {}),
  };
  const event = { ph: "X", cat: CATEGORIES[kind] ?? kind, name: nameOf(scene, at), ...placeOf(scene, lane.track), args };
  const start = scene.start[at] ?? 0;
  return timed(event, start - first, (scene.end[at] ?? 0) - start);
}

function flows(scene: Scene, inside: ReadonlySet<number>, correlations: ReadonlyMap<number, number>, first: number): string[] {
  const lines: string[] = [];
  const begun = new Set<number>();
  const trackOf = new Map<number, number>();
  for (const lane of scene.lanes) for (let at = lane.first; at < lane.last; at++) trackOf.set(at, lane.track);
  scene.work.forEach((work, i) => {
    const call = scene.source[i] ?? -1;
    if (!inside.has(work) || !inside.has(call)) return;
    const flow = { cat: "ac2g", name: "ac2g", id: correlations.get(call) };
    if (!begun.has(call)) lines.push(timed({ ph: "s", ...flow, ...placeOf(scene, trackOf.get(call) ?? 0) }, (scene.start[call] ?? 0) - first));
    begun.add(call);
    lines.push(timed({ ph: "f", bp: "e", ...flow, ...placeOf(scene, trackOf.get(work) ?? 0) }, (scene.start[work] ?? 0) - first));
  });
  return lines;
}

function names({ content }: Scene): string[] {
  return content.tracks.flatMap((track, i) => {
    const place = { pid: id(track.pid), tid: id(track.tid) };
    return [
      { ph: "M", name: "process_name", pid: place.pid, tid: 0, args: { name: track.process } },
      { ph: "M", name: "thread_name", ...place, args: { name: track.name } },
      { ph: "M", name: "thread_sort_index", ...place, args: { sort_index: i } },
    ].map((event) => JSON.stringify(event));
  });
}

function placeOf(scene: Scene, track: number): { readonly pid: string | number; readonly tid: string | number } {
  const { pid = "", tid = "" } = scene.content.tracks[track] ?? {};
  return { pid: id(pid), tid: id(tid) };
}

/** A number again where it was one. */
function id(text: string): string | number {
  const number = Number(text);
  return Number.isSafeInteger(number) && String(number) === text ? number : text;
}

/** With times to the nanosecond: `JSON.stringify` would round large ones or write them with an exponent. */
function timed(event: object, start: number, dur?: number): string {
  const times = `"ts":${microseconds(start)}${dur === undefined ? "" : `,"dur":${microseconds(dur)}`}`;
  return `${JSON.stringify(event).slice(0, -1)},${times}}`;
}

/** Nanoseconds as microseconds with three decimals. */
export function microseconds(ns: number): string {
  const whole = Math.round(ns);
  const parts = Math.abs(whole) % 1000;
  return `${whole < 0 ? "-" : ""}${(Math.abs(whole) - parts) / 1000}.${String(parts).padStart(3, "0")}`;
}

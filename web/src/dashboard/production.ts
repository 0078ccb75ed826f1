/** What runs in production, as the server tells it; records are those of `monitor/live/record.py`. */

export interface CallNow {
  readonly call: string;
  readonly rate_hz: number;
  readonly num_ended: number;
  readonly num_failed: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly p50_s: number | null;
  readonly p95_s: number | null;
  readonly p99_s: number | null;
  readonly in_flight: number;
  readonly num_dropped: number;
}

export interface Source {
  readonly model: string;
  readonly version: string;
  readonly device: string;
  readonly host: string;
  readonly pid: number;
}

export interface ProcessNow {
  readonly source: Source;
  readonly silent_s: number;
  readonly alarms: readonly string[];
  readonly rungs: Readonly<Record<string, string>>;
  readonly memory_bytes: number | null;
  readonly calls: readonly CallNow[];
}

export interface Moment {
  readonly model: string;
  readonly call: string;
  readonly at_s: number;
  readonly rate_hz: number;
  readonly failed_hz: number;
  readonly p50_s: number | null;
  readonly p95_s: number | null;
  readonly p99_s: number | null;
}

export interface Change {
  readonly source: Source;
  readonly event: { readonly at_s: number; readonly event: string; readonly call: string; readonly fields: Readonly<Record<string, string | number | boolean>> };
}

export interface LiveNow {
  readonly at_s: number;
  readonly processes: readonly ProcessNow[];
  readonly changes: readonly Change[];
  readonly moments: readonly Moment[];
}

/** Seconds that charts show. */
const SHOWN_S = 600;

/** A function of a model, which may run in many processes. */
export function keyOf({ model, call }: { readonly model: string; readonly call: string }): string {
  return JSON.stringify([model, call]);
}

/** Moments so far and those told now, in order; a stream that begins anew tells some of them again. */
export function withMoments(before: readonly Moment[], { at_s, moments }: LiveNow): readonly Moment[] {
  const first = Math.min(...moments.map((moment) => moment.at_s), Infinity);
  const kept = before.filter((moment) => moment.at_s < first && moment.at_s >= at_s - SHOWN_S);
  return [...kept, ...moments];
}

/** All functions, the one that takes most time first. */
export function functionsOf({ processes }: LiveNow): { readonly key: string; readonly name: string; readonly busy: number }[] {
  const found = new Map<string, { key: string; name: string; busy: number }>();
  for (const { source, calls } of processes)
    for (const { call, rate_hz, p50_s } of calls) {
      const key = keyOf({ model: source.model, call });
      const one = found.get(key) ?? { key, name: [source.model, call].filter(Boolean).join(" · "), busy: 0 };
      found.set(key, { ...one, busy: one.busy + rate_hz * (p50_s ?? 0) });
    }
  return [...found.values()].sort((a, b) => b.busy - a.busy || a.name.localeCompare(b.name));
}

/** The calls of one function in all processes. */
export function callsOf({ processes }: LiveNow, key: string): CallNow[] {
  return processes.flatMap(({ source, calls }) => calls.filter(({ call }) => keyOf({ model: source.model, call }) === key));
}

/** What is said of a process: its model, version, number and host. */
export function processName({ model, version, host, pid }: Source): string {
  return [model, version, `${pid}${host === "" ? "" : `@${host}`}`].filter(Boolean).join(" ");
}

import { describe, expect, it } from "vitest";
import { apart, pieces } from "../src/dashboard/FleetCharts";
import { callsOf, functionsOf, keyOf, type LiveNow, type Moment, withMoments } from "../src/dashboard/production";

const CALL = { call: "infer", rate_hz: 2, num_ended: 9, num_failed: 0, errors: {}, p50_s: 0.1, p95_s: 0.2, p99_s: 0.3, in_flight: 0, num_dropped: 0 };
const SOURCE = { model: "m", version: "", device: "", host: "h", pid: 1 };

function moment(at_s: number, p50_s: number | null = 0.1): Moment {
  return { model: "m", call: "infer", at_s, rate_hz: 2, failed_hz: 0, p50_s, p95_s: 0.2, p99_s: 0.3 };
}

function now(at_s: number, ...moments: Moment[]): LiveNow {
  const calls = [CALL, { ...CALL, call: "decode", rate_hz: 9, p50_s: 0.001 }];
  return { at_s, processes: [1, 2].map((pid) => ({ source: { ...SOURCE, pid }, silent_s: 0, alarms: [], rungs: {}, memory_bytes: null, calls })), changes: [], moments };
}

describe("what runs in production", () => {
  it("grows by what is told, and is told anew after a reconnection", () => {
    const first = withMoments([], now(1000, moment(980), moment(985)));
    expect(withMoments(first, now(1005, moment(990))).map(({ at_s }) => at_s)).toEqual([980, 985, 990]);
    expect(withMoments(first, now(1005, moment(980), moment(985), moment(990))).map(({ at_s }) => at_s)).toEqual([980, 985, 990]);
    expect(withMoments(first, now(2000))).toEqual([]);
  });

  it("begins with the function that takes most time, over all processes", () => {
    const [first] = functionsOf(now(0));
    expect(first?.key).toBe(keyOf({ model: "m", call: "infer" }));
    expect(callsOf(now(0), first?.key ?? "")).toHaveLength(2);
  });

  it("breaks lines off where nothing was told", () => {
    expect(pieces([moment(0), moment(5), moment(10, null), moment(30)], ({ p50_s }) => p50_s)).toEqual([[[0, 0.1], [5, 0.1]], [[30, 0.1]]]);
  });

  it("keeps names beside lines apart", () => {
    expect(apart([100, null, 98, 20])).toEqual([100, null, 87, 20]);
  });
});

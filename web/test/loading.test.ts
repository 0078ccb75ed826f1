import { describe, expect, it } from "vitest";
import { aroundQueue, type Lane, lasting, slotsOf, type Station } from "../src/widgets/loading/model";

function station(name: string, per_step_s: number): Station {
  return { name, doing: "making", slot: 0, meaning: "", per_step_s, share: 0, cpu_share: null, mark: "" };
}

function lane(where: string, ...stations: readonly Station[]): Lane {
  return { where, title: where, count: 1, stations, total_s: 0, pace_s: 0 };
}

describe("the pipeline", () => {
  it("has workers before the queue and everything else behind it", () => {
    const { before, behind } = aroundQueue([lane("worker"), lane("pin thread"), lane("main"), lane("device")]);
    expect(before.map(({ where }) => where)).toEqual(["worker"]);
    expect(behind.map(({ where }) => where)).toEqual(["pin thread", "main", "device"]);
  });

  it("leaves out stations that take no time, but never all", () => {
    expect(lasting(lane("main", station("fetch", 0), station("decode", 2))).map(({ name }) => name)).toEqual(["decode"]);
    expect(lasting(lane("main", station("fetch", 0), station("decode", 0))).map(({ name }) => name)).toEqual(["fetch"]);
    expect(lasting(lane("main"))).toEqual([]);
  });

  it("draws a long queue shorter and keeps its share", () => {
    expect(slotsOf({ batches: 4, occupancy: 0.5, said: "" })).toEqual({ drawn: 4, full: 2 });
    expect(slotsOf({ batches: 1000, occupancy: 0.25, said: "" })).toEqual({ drawn: 16, full: 4 });
    expect(slotsOf({ batches: 4, occupancy: null, said: "" })).toEqual({ drawn: 4, full: 0 });
  });
});

import { describe, expect, it } from "vitest";
import { numberIn } from "../src/widgets/memory/address";
import { levels } from "../src/widgets/memory/growth";
import {
  byteTicks, type Course, endOf, type HeldNode, type Holding, type LeakSeries, partsOf, pathTo, phaseAt, placesIn, pointAt,
  pointsOf, shareSaid, stacked,
} from "../src/widgets/memory/model";

const COURSE: Course = {
  event_steps: [-1, 5, 10],
  time_us_steps: [0, 500_000, 250_000],
  layers: [
    { name: "parameters", steps: [4, 0, 0] },
    { name: "inputs", steps: [0, 2 ** 40, -(2 ** 40)] },
  ],
  reserved_steps: [],
  phases: [{ name: "forward", first: 0, last: 1 }],
  peak: 1,
  peak_bytes: 2 ** 40 + 4,
  marks: [],
};

function node(parent: number, name: string, bytes: number, kind: HeldNode["kind"] = "line"): HeldNode {
  return { parent, kind, name, bytes, count: 1, category: "inputs", note: "" };
}

const NODES = [node(-1, "all", 10, "whole"), node(0, "small", 2), node(0, "rest", 3, "rest"), node(0, "large", 5), node(3, "only", 5), node(4, "a", 4), node(4, "b", 1)];

describe("a course", () => {
  it("has its values again, also beyond 32 bits", () => {
    const points = pointsOf(COURSE);
    expect([...points.event]).toEqual([-1, 4, 14]);
    expect([...(points.time ?? [])]).toEqual([0, 0.5, 0.75]);
    expect([...(points.layers[1]?.values ?? [])]).toEqual([0, 2 ** 40, 0]);
    expect(points.reserved).toBeNull();
  });

  it("stacks what is not hidden", () => {
    const { layers } = pointsOf(COURSE);
    expect(stacked(layers, new Set()).map(({ values }) => [...values])).toEqual([[4, 4, 4], [4, 2 ** 40 + 4, 4]]);
    expect(stacked(layers, new Set(["parameters"])).map(({ values }) => [...values])).toEqual([[0, 2 ** 40, 0]]);
    expect(stacked(layers, new Set(["parameters", "inputs"]))).toEqual([]);
  });

  it("knows the point that holds at a place, and its phase", () => {
    const axis = Float64Array.from([-1, 4, 14]);
    expect([-9, -1, 3.9, 4, 13, 14, 99].map((value) => pointAt(axis, value))).toEqual([0, 0, 0, 1, 1, 2, 2]);
    expect(pointAt(new Float64Array(), 3)).toBe(0);
    expect([phaseAt(COURSE.phases, 1), phaseAt(COURSE.phases, 2)]).toEqual(["forward", null]);
  });
});

describe("what is held", () => {
  it("has the largest part first and what no place tells last", () => {
    expect(partsOf(NODES, 0)).toEqual([3, 1, 2]);
    expect(pathTo(NODES, 5)).toEqual([0, 3, 4, 5]);
  });

  it("opens past parts that are the whole of what they are in", () => {
    expect(endOf(NODES, 3)).toBe(4);
    expect(endOf(NODES, 1)).toBe(1);
  });

  it("does not hang on nodes that are parts of each other", () => {
    expect(pathTo([node(1, "a", 1), node(0, "b", 1)], 0).length).toBeLessThan(5);
  });

  it("lists the places within a node", () => {
    const places = { node: [5, 6, 1], bytes: [4, 1, 2], site: ["x.py:1", "x.py:2", "y.py:3"] };
    const holding: Holding = { label: "at the peak", nodes: NODES, places, mixed: false };
    expect(placesIn(holding, 3)["site"]).toEqual(["x.py:1", "x.py:2"]);
    expect(placesIn(holding, 0)).toBe(places);
  });
});

describe("ticks of bytes", () => {
  it("are round in the unit that suits the largest", () => {
    expect(byteTicks(0, 61.2 * 2 ** 20, 5).map((tick) => tick / 2 ** 20)).toEqual([0, 20, 40, 60]);
    expect(byteTicks(435 * 1024, 470 * 1024, 4).map((tick) => tick / 1024)).toEqual([440, 450, 460, 470]);
    expect(byteTicks(0, 3, 5)).toEqual([0, 1, 2, 3]);
    expect(byteTicks(5, 5, 5)).toEqual([]);
  });
});

describe("the levels of a watch", () => {
  const leak: LeakSeries = {
    verdict: "stable", sentence: "", grows: false, warmup_steps: 0, steps: [], live_bytes: [], line: null, sites: [], more_sites: 0,
  };

  it("have an extent whatever was seen", () => {
    for (const live_bytes of [[], [0], [7, 7, 7], [1, 2 ** 40]]) {
      const { start, end } = levels({ ...leak, live_bytes });
      expect(end).toBeGreaterThan(start);
    }
  });

  it("hold the interval of the line", () => {
    const line = { steps: [0, 9], bytes: [5, 90], low_bytes: [4, 80], high_bytes: [6, 120] };
    expect(levels({ ...leak, live_bytes: [5, 90], line }).end).toBeGreaterThan(120);
  });
});

it("shares next to nothing are no row of zeros", () => {
  expect([0, 0.00002, 0.0123, 1].map(shareSaid)).toEqual(["0 %", "< 0.1 %", "1.23 %", "100 %"]);
});

it("numbers in an address are numbers or nothing", () => {
  expect(["12", "-1", "", "x", "1e999"].map((at) => numberIn({ at }, "at"))).toEqual([12, -1, null, null, null]);
});

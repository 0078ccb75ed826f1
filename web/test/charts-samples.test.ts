import { expect, it } from "vitest";
import { spaced, taken } from "../src/widgets/history/draw";
import { rowOf } from "../src/widgets/forest/Forest";
import { signOf, type VerdictView } from "../src/widgets/forest/view";
import { radius } from "../src/widgets/roofline/draw";
import { kindOf, shapeOf } from "../src/widgets/roofline/shape";
import type { Reached } from "../src/widgets/roofline/view";
import { signed } from "../src/widgets/samples/Samples";
import { binOf } from "../src/widgets/samples/spread";
import type { Spread } from "../src/widgets/samples/view";

const spread = { edges_s: [1, 2, 3, 4], counts: [5, 0, 2] } as unknown as Spread;

it("finds the bin of a duration", () => {
  expect([1, 1.5, 2, 4].map((value) => binOf(spread, value))).toEqual([0, 0, 1, 2]);
  expect(binOf(spread, 4.5)).toBeNull();
});

it("writes a change with its sign", () => {
  expect([signed(0.0342), signed(-0.001), signed(0)]).toEqual(["+3.42 %", "−0.100 %", "0 %"]);
});

it("knows the comparison of a row", () => {
  const view = { comparisons: [{ rows: [1, 2] }, { rows: [1] }] } as unknown as VerdictView;
  expect([0, 1, 2, 9].map((row) => rowOf(view, row))).toEqual([0, 0, 1, 0]);
});

it("has a sign for each outcome, and none for what decided nothing", () => {
  expect(new Set(["faster", "slower", "same", "undecided"].map(signOf)).size).toBe(4);
  expect(signOf("")).toBe("");
});

it("draws each bound in a shape of its own, its area after the time", () => {
  expect(new Set(["memory", "compute", "overhead"].map((bound) => shapeOf(kindOf(bound), 0, 0, 5))).size).toBe(3);
  expect(kindOf("transfer")).toBe("unknown");
  expect(radius({ share: 1 } as Reached)).toBeGreaterThan(radius({ share: 0.1 } as Reached));
  expect(radius({ share: -1 } as Reached)).toBe(radius(undefined));
});

it("writes days once and never into each other", () => {
  const spots = [0, 20, 100, 200].map((x) => ({ x }));
  expect(spaced(["2026-11-01", "2026-11-02", "2026-11-02", "2026-11-03"], spots)).toEqual([0, 3]);
  expect(spaced(["", "a", "a", "b"], spots)).toEqual([1, 3]);
});

it("says when a run was made", () => {
  expect(taken({ created: "2026-11-21T09:30:00.000Z" } as never)).toBe("2026-11-21 09:30");
});

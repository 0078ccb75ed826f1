import { describe, expect, it } from "vitest";
import { dots, labelRows, nearest, placed, shortened, stepped, steps, triangle, widthOf, type Spot } from "../src/widgets/charts/marks";
import { axisAround, counts, formatBetween, formatRate, plain, rate, scaleOf, seconds, ticksOf } from "../src/widgets/charts/scale";

const spot = (x: number, y: number): Spot => ({ x, y, lines: [] });

describe("scales", () => {
  it("map values to pixels and back, linearly and by logarithm", () => {
    const linear = scaleOf({ low: 10, high: 20, log: false }, 0, 100);
    expect(linear(15)).toBe(50);
    expect(linear.value(50)).toBe(15);
    const log = scaleOf({ low: 1, high: 10_000, log: true }, 400, 0);
    expect(log(100)).toBeCloseTo(200);
    expect(log.value(log(37))).toBeCloseTo(37);
  });

  it("hold what lies beyond at their ends", () => {
    const scale = scaleOf({ low: 1, high: 2, log: false }, 0, 100);
    expect([scale(-5), scale(99)]).toEqual([0, 100]);
  });

  it("survive an axis of no extent", () => {
    const { low, high } = axisAround([3, 3]);
    expect(low).toBeLessThan(3);
    expect(high).toBeGreaterThan(3);
    expect(scaleOf({ low: 1, high: 1, log: false }, 0, 10)(1)).toBe(0);
  });
});

describe("ticks", () => {
  const labels = (low: number, high: number, log: boolean, unit = plain, most = 6): string[] =>
    ticksOf({ low, high, log }, unit, most).map(({ label }) => label);

  it("are round and share a unit, as in the static charts", () => {
    expect(labels(0.0305, 0.0362, false, seconds, 4)).toEqual(["32 ms", "34 ms", "36 ms"]);
    expect(labels(0.9, 1500, true)).toEqual(["1", "10", "100", "1000"]);
    expect(labels(1e8, 2e12, true, rate("FLOP/s"))).toEqual(["100 MFLOP/s", "1 GFLOP/s", "10 GFLOP/s", "100 GFLOP/s", "1 TFLOP/s"]);
  });

  it("are powers on a wide axis however narrow the drawing", () => {
    expect(labels(0.05, 800, true, plain, 3)).toEqual(["0.1", "10"]);
  });

  it("of counts are whole numbers", () => {
    expect(labels(0.5, 2.5, false, counts)).toEqual(["1", "2"]);
    expect(labels(0, 53, false, counts)).toEqual(["0", "10", "20", "30", "40", "50"]);
  });
});

describe("figures", () => {
  it("tell the ends of an interval apart", () => {
    expect(formatBetween(0.0318, 0.0323)).toBe("31.8–32.3 ms");
    expect(formatBetween(0.03201, 0.03202)).toBe("32.01–32.02 ms");
    expect(formatBetween(1, 1)).toBe("1.00–1.00 s");
  });

  it("have prefixes", () => {
    expect(formatRate(3.2e12, "FLOP/s")).toBe("3.20 TFLOP/s");
    expect(formatRate(12, "B/s")).toBe("12.0 B/s");
  });
});

describe("the mark that is meant", () => {
  const spots = [spot(10, 10), spot(50, 10), spot(50, 90)];

  it("is the nearest one within reach", () => {
    expect(nearest(spots, 12, 12, false)).toBe(0);
    expect(nearest(spots, 50, 80, false)).toBe(2);
    expect(nearest(spots, 300, 300, false)).toBeNull();
    expect(nearest([], 1, 1, true)).toBeNull();
  });

  it("is the one at its place across, however far above, where a drawing is read from left to right", () => {
    expect(nearest(spots, 49, 500, true)).toBe(2);
    expect(nearest(spots, 49, 0, true)).toBe(1);
  });

  it("follows the keys and stays among the marks", () => {
    expect(stepped("ArrowRight", false, null, 3)).toBe(0);
    expect(stepped("ArrowLeft", false, null, 3)).toBe(2);
    expect(stepped("ArrowRight", false, 2, 3)).toBe(2);
    expect(stepped("ArrowRight", false, 0, 2000)).toBe(20);
    expect(stepped("ArrowRight", true, 0, 2000)).toBe(200);
    expect([stepped("Home", false, 2, 3), stepped("End", false, 0, 3)]).toEqual([0, 2]);
    expect(stepped("Escape", false, 1, 3)).toBeNull();
    expect([stepped("x", false, 1, 3), stepped("ArrowRight", false, null, 0)]).toEqual([undefined, undefined]);
  });
});

describe("labels", () => {
  const frame = { left: 0, right: 300, top: 0, bottom: 200 };

  it("do not cover each other, and the important ones win", () => {
    const crowd = ["first", "second", "third", "fourth", "fifth", "sixth"].map((text) => ({ x: 150, y: 100, gap: 5, text }));
    const found = placed(crowd, frame);
    expect(found.map(({ text }) => text)).toEqual(["first", "second", "third"]);
  });

  it("stay inside and keep clear of what is taken", () => {
    const [atEdge] = placed([{ x: 295, y: 100, gap: 5, text: "at the edge" }], frame);
    expect(atEdge?.anchor).toBe("end");
    const everything = [{ left: 0, right: 300, top: 0, bottom: 200 }];
    expect(placed([{ x: 150, y: 100, gap: 5, text: "no room" }], frame, everything)).toEqual([]);
  });

  it("of vertical lines have rows that no line crosses", () => {
    expect(labelRows(4, 2)).toEqual([1, 0, 2, 3]);
  });

  it("are shortened in their middle", () => {
    expect(shortened("short", 10)).toBe("short");
    expect(shortened("a_very_long_kernel_name_v2", 12)).toBe("a_very_…e_v2");
    expect(widthOf("漂移")).toBeGreaterThan(widthOf("ab"));
  });
});

it("writes paths", () => {
  expect(dots([[1, 2], [3.14159, 4]])).toBe("M1 2h0M3.1 4h0");
  expect(steps([[0, 10], [5, 8], [9, 0]])).toBe("M0 10H5V8H9V0");
  expect(triangle(0, 0, 4)).toContain("Z");
});

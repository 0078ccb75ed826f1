import { describe, expect, it } from "vitest";
import { around, fitted, keyed, panned, pinched, toPixels, toValue, zoomed } from "../src/canvas/viewport";

const axis = { start: 0, end: 1000, least: 10 };

describe("a range in view", () => {
  it("never leaves the axis", () => {
    expect(panned(axis, { start: 900, end: 1000 }, 50)).toEqual({ start: 900, end: 1000 });
    expect(panned(axis, { start: 0, end: 100 }, -50)).toEqual({ start: 0, end: 100 });
    expect(fitted(axis, { start: -500, end: 5000 })).toEqual({ start: 0, end: 1000 });
  });

  it("keeps the point under the pointer where it is while zooming", () => {
    const before = { start: 100, end: 300 };
    const after = zoomed(axis, before, 2, 150);
    expect(toPixels(after, 800, 150)).toBeCloseTo(toPixels(before, 800, 150));
    expect(after.end - after.start).toBeCloseTo(100);
  });

  it("zooms no closer than the least extent", () => {
    const { start, end } = zoomed(axis, { start: 100, end: 112 }, 100, 106);
    expect(end - start).toBeCloseTo(10);
  });

  it("maps pixels to values and back", () => {
    const range = { start: 20, end: 60 };
    expect(toValue(range, 800, toPixels(range, 800, 33))).toBeCloseTo(33);
  });

  it("follows two fingers: what was between them stays between them", () => {
    const before = { start: 100, end: 300 };
    const after = pinched(axis, before, 2, 150, 0.1);
    expect(after.end - after.start).toBeCloseTo(100);
    expect(toPixels(after, 800, 150)).toBeCloseTo(toPixels(before, 800, 150) + 80);
  });

  it("knows its keys, in small and capital letters", () => {
    const range = { start: 400, end: 600 };
    expect(keyed(axis, range, "W")).toEqual(zoomed(axis, range, 1.25, 500));
    expect(keyed(axis, range, "d")?.start).toBeGreaterThan(400);
    expect(keyed(axis, range, "0")).toEqual({ start: 0, end: 1000 });
    expect(keyed(axis, range, "x")).toBeNull();
  });

  it("shows an interval with room around it, and a moment at the least extent", () => {
    expect(around(axis, { start: 440, end: 500 })).toEqual({ start: 420, end: 520 });
    const moment = around(axis, { start: 500, end: 500 });
    expect(moment.end - moment.start).toBe(10);
  });
});

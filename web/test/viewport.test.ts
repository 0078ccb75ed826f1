import { describe, expect, it } from "vitest";
import { fitted, panned, toPixels, toValue, zoomed } from "../src/canvas/viewport";

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
});

import { describe, expect, it } from "vitest";
import { parametersOf, placeOf, wrongIn } from "../src/widgets/timeline/address";
import { shadeOf } from "../src/widgets/timeline/drawing";
import { litBy, longestNamed, matchesOf, nextMatch, standFor, unsearched } from "../src/widgets/timeline/find";
import { HEADER_PX, laneAt, layoutOf, pastCallers, ROW_PX, scrollTo, tracksWithin } from "../src/widgets/timeline/layout";
import {
  busyOf, kindOf, laneOf, launchedBy, nameOf, type Scene, sceneOf, selfOf, sliceAt, sourceOf,
} from "../src/widgets/timeline/scene";
import { stepMarks } from "../src/widgets/timeline/steps";
import { covered, namesakesOf, sumsByKind } from "../src/widgets/timeline/sums";
import { momentOf, roundStep, ticksOf } from "../src/widgets/timeline/ticks";
import { CONTENT } from "./timeline-content";

const scene: Scene = sceneOf(CONTENT);

describe("decoding", () => {
  it("adds gaps and durations up, lane by lane", () => {
    expect([...scene.start]).toEqual([200, 350, 500, 0, 450, 20]);
    expect([...scene.end]).toEqual([300, 450, 1000, 150, 500, 50]);
    expect(laneOf(scene, 4)).toEqual({ track: 1, row: 0, first: 3, last: 5 });
  });

  it("knows launches in both directions", () => {
    expect([0, 1, 2, 3].map((slice) => sourceOf(scene, slice))).toEqual([5, 5, -1, -1]);
    expect(launchedBy(scene, 5)).toEqual([0, 1]);
  });

  it("tells what a slice is, and what of it is its own", () => {
    expect([nameOf(scene, 5), kindOf(scene, 5)]).toEqual(["cudaLaunchKernel", "runtime"]);
    expect([selfOf(scene, 3), selfOf(scene, 5), selfOf(scene, 0)]).toEqual([120, 30, null]);
    expect([busyOf(scene, 2), busyOf(scene, 3)]).toEqual([250, 150]);
  });

  it("reaches from the first to the last moment", () => {
    const early = sceneOf({ ...CONTENT, slices: { ...CONTENT.slices, gap_ns: [-400, 50, 50, 0, 300, 20] } });
    expect(early.axis.start).toBeLessThanOrEqual(-400);
    expect(early.axis.end).toBeGreaterThanOrEqual(1000);
  });
});

describe("what is under the pointer", () => {
  const stream = scene.lanes[0];
  it("is the slice at the moment, else the nearest within reach", () => {
    if (stream === undefined) throw new Error("no lane");
    expect([200, 299, 310, 345, 325, 2000].map((at) => sliceAt(scene, stream, at, 12))).toEqual([0, 0, 0, 1, -1, -1]);
  });
});

describe("callers of everything", () => {
  const nested = sceneOf({
    ...CONTENT,
    tracks: [{ name: "main", process: "python", is_device: false, num_rows: 4, pid: "1", tid: "1" }],
    lanes: { track: [0, 0, 0, 0], row: [0, 1, 2, 3], num_slices: [1, 1, 2, 1] },
    slices: { gap_ns: [0, 10, 20, 100, 30], dur_ns: [1000, 980, 400, 400, 10], label: [0, 0, 0, 0, 0] },
    merged: { slice: [], num_events: [], busy_ns: [] },
    launches: { slice: [], source: [] },
  });
  it("are scrolled past, down to the last of them", () => {
    expect(pastCallers(nested, layoutOf(nested, new Set()))).toBe(ROW_PX);
  });
  it("stay where nothing fills the time", () => {
    expect(pastCallers(scene, layoutOf(scene, new Set()))).toBe(0);
  });
});

describe("layout", () => {
  const layout = layoutOf(scene, new Set());
  it("places tracks one below the other", () => {
    expect(layout.tracks.map(({ top }) => top)).toEqual([0, HEADER_PX + ROW_PX + 6]);
    expect(laneAt(layout, HEADER_PX + 1)?.first).toBe(0);
    expect(laneAt(layout, 1)).toBeUndefined();
    expect(tracksWithin(layout, 0, 10).map(({ track }) => track)).toEqual([0]);
  });

  it("shows a folded track as its fullest row", () => {
    const folded = layoutOf(scene, new Set([1]));
    expect(folded.tracks[1]?.lanes.map(({ row }) => row)).toEqual([0]);
    expect(folded.height).toBeLessThan(layout.height);
  });

  it("scrolls no further than is needed to see a row", () => {
    const [first, last] = [scene.lanes[0], scene.lanes[2]];
    if (first === undefined || last === undefined) throw new Error("no lane");
    expect(scrollTo(layout, first, 0, 60)).toBe(0);
    expect(scrollTo(layout, last, 0, 60)).toBeGreaterThan(0);
  });
});

describe("search", () => {
  it("finds parts of names, small or capital, in order of time", () => {
    expect([...matchesOf(scene, litBy(scene, "GEMM", null))]).toEqual([0, 1]);
    expect([...matchesOf(scene, litBy(scene, "a", null))]).toEqual([3, 5, 4, 2]);
    expect(litBy(scene, "  ", null)).toBeNull();
    expect([...matchesOf(scene, litBy(scene, "", "runtime"))]).toEqual([5]);
  });

  it("goes around, forth and back", () => {
    const matches = matchesOf(scene, litBy(scene, "gemm", null));
    expect([-1, 0, 1].map((selected) => nextMatch(scene, matches, selected, 0, false))).toEqual([0, 1, 0]);
    expect([0, 1].map((selected) => nextMatch(scene, matches, selected, 0, true))).toEqual([1, 0]);
    expect(nextMatch(scene, matches, -1, 320, false)).toBe(1);
    expect(nextMatch(scene, matches, -1, 320, true)).toBe(0);
    expect(nextMatch(scene, new Int32Array(0), -1, 0, false)).toBe(-1);
  });

  it("counts what merged slices stand for, and what no name is known of", () => {
    expect(unsearched(scene)).toBe(9);
    const named = sceneOf({ ...CONTENT, merged: { slice: [0], num_events: [4], busy_ns: [40] } });
    expect(standFor(named, matchesOf(named, litBy(named, "gemm", null)))).toBe(5);
    expect(unsearched(named)).toBe(0);
  });

  it("takes the longest slice of a name", () => {
    expect([longestNamed(scene, "aten::mm"), longestNamed(scene, "nothing")]).toEqual([3, -1]);
  });
});

describe("sums", () => {
  it("add up by kind, without gaps of merged slices and cut at the edges", () => {
    const whole = sumsByKind(scene, { start: 0, end: 1000 });
    expect(whole.map(({ kind, events, busy }) => [kind, events, busy])).toEqual([
      ["kernel", 11, 450],
      ["cpu_op", 2, 200],
      ["runtime", 1, 30],
    ]);
    expect(sumsByKind(scene, { start: 250, end: 400 })).toEqual([{ kind: "kernel", events: 2, busy: 100 }]);
  });

  it("count what overlaps once", () => {
    expect(covered([[5, 9], [0, 4], [1, 2], [8, 12]])).toBe(11);
    expect(covered([])).toBe(0);
  });

  it("tell about all of a name", () => {
    expect(namesakesOf(scene, 0)).toEqual({ count: 2, sum: 200, least: 100, most: 100 });
  });
});

describe("a merged slice", () => {
  it("knows its busy share, and looks the lighter the less busy it is", () => {
    expect([...scene.share]).toEqual([1, 1, 0.5, 1, 1, 1]);
    expect([1, 0.9, 0.8, 0.5, 0.4, 0.1, 0].map(shadeOf)).toEqual([0, 0, 1, 2, 3, 4, 4]);
  });
});

describe("steps", () => {
  const many = Array.from({ length: 6756 }, (_, i) => ({ name: `step ${i}`, start_ns: 100 * i, end_ns: 100 * i + 90 }));
  const whole = { start: 0, end: 675_600 };
  it("are marks of several where they are too many, and cover all of the time", () => {
    const { marks, count, isMerged } = stepMarks(many, whole, 1000);
    expect([count, isMerged, marks.length, marks[0]?.step, marks[0]?.from]).toEqual([6756, true, 250, -1, 0]);
    expect(marks.at(-1)?.to).toBeCloseTo(1000, 0);
    expect(marks.slice(1).every(({ from }, i) => from >= (marks[i]?.to ?? 0) && from - (marks[i]?.to ?? 0) < 1)).toBe(true);
  });

  it("keep their shade when the view is moved", () => {
    const shade = (start: number, x: number): boolean | undefined =>
      stepMarks(many, { start, end: start + 337_800 }, 1000).marks.find(({ to }) => to > x)?.isOdd;
    expect(shade(3378, 490)).toBe(shade(0, 500));
  });

  it("stand for themselves where there is room, and only those in view", () => {
    const { marks, isMerged } = stepMarks(many, { start: 50, end: 295 }, 1000);
    expect(isMerged).toBe(false);
    expect(marks.map(({ step, isOdd }) => [step, isOdd])).toEqual([[0, false], [1, true], [2, false]]);
    expect(stepMarks([], whole, 1000)).toEqual({ marks: [], count: 0, isMerged: false });
  });
});

describe("time axis", () => {
  it("has round steps", () => {
    expect([0.3, 3, 7, 20, 99].map(roundStep)).toEqual([1, 5, 10, 20, 100]);
  });

  it("writes as many digits as tell marks apart", () => {
    expect(ticksOf({ start: 0, end: 1e6 }, 500).map(({ text }) => text)).toEqual(["0.0 ms", "0.2 ms", "0.4 ms", "0.6 ms", "0.8 ms", "1.0 ms"]);
    const close = ticksOf({ start: 12_345_000, end: 12_345_100 }, 400).map(({ text }) => text);
    expect(new Set(close).size).toBe(close.length);
    expect(momentOf(839_123_456)).toBe("839.123 ms");
  });
});

describe("the address", () => {
  it("gives back what it was given", () => {
    const place = {
      range: { start: 100, end: 400 }, selected: 1, find: "gemm", kind: CONTENT.kinds[0] ?? null,
      measured: { start: 200, end: 300 }, folded: new Set([1]),
    };
    expect(placeOf(scene, parametersOf(scene, place))).toEqual(place);
    expect(wrongIn(scene, parametersOf(scene, place))).toEqual([]);
  });

  it("leaves out what is as at first, and refuses nonsense", () => {
    const nonsense = { from: "x", select: "99", to: "", kind: "colour", measure: "7", fold: "0,9" };
    expect(parametersOf(scene, placeOf(scene, { ...nonsense, fold: "9" }))).toEqual({});
    expect(wrongIn(scene, nonsense)).toEqual(["from=x", "select=99", "kind=colour", "measure=7", "fold=0,9"]);
    expect(wrongIn(scene, { from: "9", to: "3", measure: "3..1", find: "" })).toEqual(["from=9", "to=3", "measure=3..1"]);
  });

  it("selects the longest slice of a name, and goes there", () => {
    const { selected, range } = placeOf(scene, { select: "aten::mm" });
    expect(selected).toBe(3);
    expect(range.end - range.start).toBeGreaterThan(150);
  });
});

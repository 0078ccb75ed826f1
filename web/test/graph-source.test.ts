import { describe, expect, it } from "vitest";
import { countsOf, type Kind, KINDS, type LineNote, type NotedFile, rowsOf } from "../src/widgets/breaks/content";
import { cellOf, partsOf } from "../src/widgets/compile/content";

function noteAt(line: number, kind: Kind): LineNote {
  return { line, kind, count: 1, title: kind, remark: "", explanation: "", advice: [], stack: [], code: "" };
}

describe("breaks over the source", () => {
  const file: NotedFile = {
    file: "m.py",
    name: "m.py",
    is_read: true,
    pieces: [
      { first_line: 3, lines: ["a", "b"] },
      { first_line: 9, lines: ["c"] },
    ],
    notes: [noteAt(4, "break"), noteAt(4, "finding"), noteAt(9, "follows")],
  };
  it("shows lines with their numbers, gaps between, and only notes of the kinds chosen", () => {
    const rows = rowsOf(file, new Set<Kind>(["break", "finding"]));
    expect(rows.map((row) => (row.gap ? "gap" : row.line))).toEqual(["gap", 3, 4, "gap", 9]);
    expect(rows.map((row) => (row.gap ? 0 : row.notes.length))).toEqual([0, 0, 2, 0, 0]);
    expect(rowsOf(file, new Set(KINDS)).map((row) => (row.gap ? 0 : row.notes.length))).toEqual([0, 0, 2, 0, 1]);
  });
  it("counts the gravest kinds first", () => {
    expect(countsOf(file.notes)).toEqual([
      ["break", 1],
      ["follows", 1],
      ["finding", 1],
    ]);
    expect(rowsOf({ ...file, pieces: [] }, new Set(KINDS))).toEqual([]);
  });
});

describe("what compiling cost", () => {
  it("puts phases end to end, and leaves out those without time", () => {
    expect(partsOf([1, 0, 3], 8)).toEqual([
      { phase: 0, start: 0, end: 0.125, seconds: 1 },
      { phase: 2, start: 0.125, end: 0.5, seconds: 3 },
    ]);
    expect(partsOf([1], 0)).toEqual([]);
    expect(partsOf([Number.NaN, 2], 2)).toHaveLength(1);
  });
  it("tells the guard that failed first from those that failed as well", () => {
    const row = { guard: "len(x) == …", kind: "length", failed: [0, 2], also: [1], said: ["len(x) == 2", "len(x) == 4", "len(x) == 3"] };
    expect([0, 1, 2, 3].map((column) => cellOf(row, column))).toEqual([
      { state: "first", said: "len(x) == 2" },
      { state: "also", said: "len(x) == 3" },
      { state: "first", said: "len(x) == 4" },
      { state: "held", said: "" },
    ]);
  });
});

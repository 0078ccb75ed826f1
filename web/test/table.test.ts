import { describe, expect, it } from "vitest";
import { field, textsToCsv, textsToMarkdown, toCsv, toMarkdown } from "../src/export/table";
import { functionOf, SHEETS } from "../src/widgets/operators/columns";
import { around } from "../src/widgets/idle/range";
import { parseBound, within } from "../src/widgets/table/bounds";
import { sparkPoints } from "../src/widgets/table/Cells";
import { compareKeys, sortKey } from "../src/widgets/table/enhance";
import { type Column, columnsOf, rowsOf, rowsOfList, telling } from "../src/widgets/table/model";
import { arranged, clicked } from "../src/widgets/table/order";
import { mostInPage, ROW_PX, rowsInView, scrollFor, widthOf } from "../src/widgets/table/range";
import { formatRate, shortPlace, shown } from "../src/widgets/table/write";

const NAME: Column = { key: "name", title: "Operator", kind: "code" };
const TIME: Column = { key: "ns", title: "Time", kind: "ns" };
const SHARE: Column = { key: "share", title: "Share", kind: "share" };
const COLUMNS = [NAME, TIME, SHARE];
const ROWS = rowsOf({ name: ["mm", "add", "op10", "op9"], ns: [3e6, 1e3, null, 1e3], share: [0.5, 0.1, 0.02, null], num: 4 });
const NOTHING = { find: "", bounds: {}, sort: [] };

/** A repeatable source of numbers from 0 to 1. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const PARTS = ["a", "|", '"', ",", "\n", "\r\n", "=1", "+", "-", "@", "`", "\\", " ", "<img onerror=alert(1)>", "é", "\t", "*_[]"];
const hostile = (next: () => number): string => Array.from({ length: Math.floor(next() * 7) }, () => PARTS[Math.floor(next() * PARTS.length)]).join("");

/** Reads CSV by the rules of RFC 4180. */
function readCsv(text: string): string[][] {
  const lines: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    lines.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? "");
    if (end === "\r\n") lines.push([]);
    if (end === "") break;
  }
  lines.pop(); // after the last line end
  return lines;
}

describe("rows", () => {
  it("are read from columns and lists, whatever else the record holds", () => {
    expect(ROWS.length).toBe(4);
    expect([ROWS.cell("ns", 2), ROWS.cell("nowhere", 0), ROWS.cell("name", 9)]).toEqual([null, null, null]);
    expect(rowsOfList([{ a: 1 }]).cell("a", 0)).toBe(1);
    expect(columnsOf({ name: ["x"], ns: [null], share: [] }, COLUMNS)).toEqual([NAME]);
  });

  it("are sorted by several keys, missing values last, equal ones as they were", () => {
    const by = (...sort: { key: string; down: boolean }[]): number[] => [...arranged(COLUMNS, ROWS, { ...NOTHING, sort })];
    expect(by({ key: "ns", down: true })).toEqual([0, 1, 3, 2]);
    expect(by({ key: "ns", down: false })).toEqual([1, 3, 0, 2]);
    expect(by({ key: "ns", down: false }, { key: "name", down: true })).toEqual([3, 1, 0, 2]);
    expect(by({ key: "name", down: false })).toEqual([1, 0, 3, 2]); // op9 before op10
    expect(by({ key: "nowhere", down: true })).toEqual([0, 1, 2, 3]);
  });

  it("are filtered by words and by quantities", () => {
    const kept = (find: string, bounds: Record<string, string> = {}): number[] => [...arranged(COLUMNS, ROWS, { find, bounds, sort: [] })];
    expect(kept("OP")).toEqual([2, 3]);
    expect(kept("op -10")).toEqual([3]);
    expect(kept("  - ")).toEqual([0, 1, 2, 3]);
    expect(kept("", { ns: ">2µs" })).toEqual([0]);
    expect(kept("", { ns: "=1us", share: "<50%" })).toEqual([1]);
    expect(kept("", { ns: "nonsense" })).toEqual([0, 1, 2, 3]);
  });

  it("are ordered as plain sorting orders them, on any values", () => {
    const next = random(7);
    for (let round = 0; round < 50; round++) {
      const values = Array.from({ length: Math.floor(next() * 40) }, () => (next() < 0.2 ? null : Math.floor(next() * 9) - 4));
      const order = arranged([TIME], rowsOf({ ns: values }), { ...NOTHING, sort: [{ key: "ns", down: true }] });
      const expected = values.map((_, i) => i).sort((a, b) => {
        const [x, y] = [values[a] ?? null, values[b] ?? null];
        return x === null || y === null ? Number(x === null) - Number(y === null) || a - b : y - x || a - b;
      });
      expect([...order]).toEqual(expected);
    }
  });

  it("turn with each click on a heading", () => {
    expect(clicked([], TIME, false)).toEqual([{ key: "ns", down: true }]);
    expect(clicked([{ key: "ns", down: true }], TIME, false)).toEqual([{ key: "ns", down: false }]);
    expect(clicked([{ key: "ns", down: false }], TIME, false)).toEqual([]);
    expect(clicked([{ key: "ns", down: true }], NAME, true)).toEqual([{ key: "ns", down: true }, { key: "name", down: false }]);
    expect(clicked([{ key: "ns", down: true }], NAME, false)).toEqual([{ key: "name", down: false }]);
  });

  it("of 50,000 are arranged in a fraction of a second", () => {
    const next = random(3);
    const many = rowsOf({ name: Array.from({ length: 50_000 }, (_, i) => `op ${i % 997}`), ns: Array.from({ length: 50_000 }, () => next() * 1e9) });
    const begun = performance.now();
    arranged(COLUMNS, many, { find: "op 1", bounds: { ns: ">1ms" }, sort: [{ key: "name", down: false }, { key: "ns", down: true }] });
    expect(performance.now() - begun).toBeLessThan(2000);
  });
});

describe("bounds", () => {
  it("are read with the units of their column", () => {
    const [time, share, size, count] = ["ns", "share", "bytes", "count"].map((kind) => (text: string) => parseBound(kind as Column["kind"], text));
    expect(time?.(">1ms")).toMatchObject({ low: 1e6, withLow: false, high: Infinity });
    expect(time?.("<= 2.5 s")).toMatchObject({ high: 2.5e9, withHigh: true });
    expect(time?.("10us..2ms")).toMatchObject({ low: 1e4, high: 2e6 });
    expect(share?.("<5%")).toMatchObject({ high: 0.05, withHigh: false });
    expect(size?.("≥1KiB")).toMatchObject({ low: 1024, withLow: true });
    expect(count?.("2k")).toMatchObject({ low: 2000, withLow: true });
    expect(count?.("1,234,567")).toMatchObject({ low: 1234567 });
    expect(parseBound("rate", ">1.5 TFLOP/s")).toMatchObject({ low: 1.5e12 });
    expect(parseBound("rate", ">3 B/s")).toMatchObject({ low: 3 });
    for (const odd of ["", "abc", ">", "1..", "5 parsecs"]) expect(time?.(odd)).toBeNull();
  });

  it("hold their ends only where they are said to", () => {
    expect(within({ low: 1, high: 2, withLow: false, withHigh: true }, 1)).toBe(false);
    expect(within({ low: 1, high: 2, withLow: false, withHigh: true }, 2)).toBe(true);
    expect(within({ low: -Infinity, high: 2, withLow: true, withHigh: true }, null)).toBe(false);
  });
});

describe("export", () => {
  const selection = { columns: COLUMNS, rows: ROWS, order: [0, 2], title: (column: Column) => column.title };

  it("writes exact numbers with their unit in the heading", () => {
    expect(toCsv(selection)).toBe("Operator,Time (ns),Share\r\nmm,3000000,0.5\r\nop10,,0.02\r\n");
  });

  it("writes Markdown as the table shows it", () => {
    expect(toMarkdown(selection)).toBe("| Operator | Time | Share |\n| :-- | --: | --: |\n| `mm` | 3.00 ms | 50.0 % |\n| `op10` | – | 2.00 % |\n");
  });

  it("takes no text for a formula, and every number for one", () => {
    expect(["=1+1", "+1", "-1", "@x", "\t=1", " =1", "a=1"].map(field)).toEqual(["'=1+1", "'+1", "'-1", "'@x", "'\t=1", "' =1", "a=1"]);
    expect([field(-1.5), field(Infinity), field('a"b')]).toEqual(["-1.5", "", '"a""b"']);
  });

  it("can be read back, whatever the texts", () => {
    const next = random(11);
    for (let round = 0; round < 300; round++) {
      const texts = Array.from({ length: 1 + Math.floor(next() * 3) }, () => [hostile(next), hostile(next)]);
      const read = readCsv(textsToCsv(texts));
      expect(read.map((line) => line.map((one, i) => one.replace(/^'/, "") === texts[read.indexOf(line)]?.[i]?.replace(/^'/, "")))).toEqual(texts.map(() => [true, true]));
      expect(read.flat().some((text) => /^\s*[=+\-@]/.test(text))).toBe(false);
    }
  });

  it("gives Markdown a line per row and a cell per column, whatever the texts", () => {
    const next = random(13);
    for (let round = 0; round < 300; round++) {
      const texts = Array.from({ length: 3 }, () => hostile(next));
      const rows = rowsOf({ name: texts, ns: [1, 2, 3] });
      for (const kind of ["code", "text"] as const) {
        const lines = toMarkdown({ ...selection, rows, order: [0, 1, 2], columns: [{ ...NAME, kind }, TIME] }).trimEnd().split("\n");
        expect(lines).toHaveLength(5);
        for (const line of lines) expect(line.replaceAll(/\\\\/g, kind === "text" ? "" : "$&").match(/(?<!\\)\|/g)).toHaveLength(3);
      }
    }
    expect(textsToMarkdown([["a|b", "c"], ["d", "<b>"]])).toBe("| a\\|b | c |\n| --- | --- |\n| d | \\<b\\> |\n");
  });
});

describe("cells", () => {
  it("are written as the static part writes them", () => {
    expect(shown({ ...TIME, kind: "rate", unit: "FLOP/s" }, 3.2e12)).toBe("3.20 TFLOP/s");
    expect(formatRate(15_500, "images/s")).toBe("15.5 k images/s");
    expect(shown({ ...TIME, kind: "bytes" }, 1536)).toBe("1.50 KiB");
    expect(shown(TIME, Number.NaN)).toBe("–");
    expect(shortPlace("/home/me/project/src/model/layers.py:12 f")).toBe("…/model/layers.py:12 f");
    expect(shortPlace("a/b.py:1")).toBe("a/b.py:1");
  });

  it("draw small lines of any numbers", () => {
    expect(sparkPoints([])).toBe("");
    expect(sparkPoints([1])).toBe("0.0,9.0");
    expect(sparkPoints([0, Number.NaN, 1])).toBe("0.0,16.0 90.0,2.0");
  });
});

describe("what is in the page", () => {
  it("covers the view and no more than some rows beyond", () => {
    for (const number of [0, 1, 10, 50_000]) {
      for (const scrolled of [0, 7, 333, 1_400_000, 9e9]) {
        const { first, end } = rowsInView(scrolled, 480, number);
        expect(first).toBeGreaterThanOrEqual(0);
        expect(end).toBeLessThanOrEqual(number);
        expect(end - first).toBeLessThanOrEqual(mostInPage(480));
        const top = Math.floor(scrolled / ROW_PX);
        if (top < number) expect(first <= top && top < end).toBe(true);
      }
    }
  });

  it("scrolls no farther than it must", () => {
    expect([scrollFor(0, 500, 300), scrollFor(3, 0, 300), scrollFor(20, 0, 300)]).toEqual([0, 0, 330]);
  });

  it("has columns as wide as their cells, within reason", () => {
    const long = rowsOf({ name: ["x".repeat(500)] });
    expect(widthOf(NAME, "Operator", long)).toBeLessThan(30);
    expect(widthOf(TIME, "Time", ROWS)).toBeGreaterThan(7);
  });
});

describe("static tables", () => {
  it("are sorted by what their cells mean", () => {
    const up = ["1.5 ms", "20 µs", "–", "3 s", "0", "1,200 ns"].map(sortKey).sort(compareKeys);
    expect(up).toEqual([0, 1.2e-6, 2e-5, 1.5e-3, 3, null].map((value) => (value === null ? null : expect.closeTo(value, 12))));
    expect(["3.20 TFLOP/s", "−2 %", "2 GiB", "aten::mm", "1.42× faster"].map(sortKey)).toEqual([3.2e12, -2, 2 ** 31, "aten::mm", 1.42]);
    expect(["b", "a10", "a9"].map(sortKey).sort(compareKeys)).toEqual(["a9", "a10", "b"]);
  });
});

describe("the operators page", () => {
  it("shows the columns that say something", () => {
    const [operators] = SHEETS;
    if (operators === undefined) throw new Error("no sheets");
    const listed = { num_rows: 1, num_listed: 1, name: ["mm"], device_self_ns: [0], host_self_ns: [5], calls: [1] };
    expect(telling(listed, operators.columns).map(({ key }) => key)).toEqual(["name", "host_self_ns", "calls"]);
  });

  it("searches for what a row is called elsewhere", () => {
    expect([functionOf("a/b.py:12 Net.forward"), functionOf("module 3")]).toEqual(["Net.forward", "module 3"]);
    const [operators] = SHEETS;
    expect(operators?.term(rowsOf({ name: ["(other)"] }), 0)).toBe("");
  });
});

describe("the idle page", () => {
  it("puts a gap in the middle of the timeline", () => {
    expect(around("0", 100, 30, 1000)).toEqual({ rank: "0", from: "70", to: "160" });
    expect(around("1", 5, 30, 40)).toEqual({ rank: "1", from: "0", to: "40" });
  });
});

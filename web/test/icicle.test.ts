import { describe, expect, it } from "vitest";
import { changeOf } from "../src/widgets/icicle/change";
import { figuresOf } from "../src/widgets/icicle/figures";
import { matcher, search } from "../src/widgets/icicle/find";
import { about, without } from "../src/widgets/icicle/grow";
import { hideable, hider } from "../src/widgets/icicle/hiding";
import { cutTo, label } from "../src/widgets/icicle/label";
import { layoutOf, neighbour, nodeAtPlace } from "../src/widgets/icicle/layout";
import { FIRST_LOOK, formatLook, parseLook } from "../src/widgets/icicle/look";
import { luminance, mixed, rgbOf } from "../src/widgets/icicle/palette";
import { folded, nodeOf, pathOf } from "../src/widgets/icicle/path";
import { at, firstWeight, nameOf, type Tree, treeOf } from "../src/widgets/icicle/tree";
import { rangeOf } from "../src/widgets/icicle/zoom";

interface Row {
  readonly parent: number;
  readonly name: string;
  readonly kind?: string;
  readonly calls?: number;
  readonly host?: number;
  readonly device?: number;
}

/** A tree of rows; the root and a thread come first. */
function grown(rows: readonly Row[]): Tree {
  const all: Row[] = [{ parent: -1, name: "(all)", kind: "trace" }, { parent: 0, name: "main", kind: "thread" }, ...rows];
  const names = [...new Set(all.map((row) => row.name))];
  const kinds = [...new Set(all.map((row) => row.kind ?? "cpu_op"))];
  const tree = treeOf({
    path: "trace.json",
    names,
    kinds,
    calls: {
      parent: all.map((row) => row.parent),
      name: all.map((row) => names.indexOf(row.name)),
      kind: all.map((row) => kinds.indexOf(row.kind ?? "cpu_op")),
      calls: all.map((row) => row.calls ?? 1),
      self_ns: all.map((row) => row.host ?? 0),
      device_self_ns: all.map((row) => row.device ?? 0),
    },
  });
  if (tree === null) throw new Error("no tree");
  return tree;
}

/** Paths with what is at or below them. */
function totals(tree: Tree): Record<string, number> {
  const host = tree.sides[0]?.total.host ?? [];
  return Object.fromEntries([...tree.parent.keys()].map((node) => [pathOf(tree, node), at(host, node)]));
}

const FRAME = "python_function";
const step = grown([
  { parent: 1, name: "step", kind: FRAME, host: 5 }, // 2
  { parent: 2, name: "nn.Module: Net_0", kind: FRAME, host: 3 }, // 3
  { parent: 3, name: "aten::mm", host: 20, calls: 4 }, // 4
  { parent: 2, name: "aten::mm", host: 10, calls: 2 }, // 5
  { parent: 4, name: "launch", kind: "runtime", host: 7 }, // 6
  { parent: 6, name: "gemm", kind: "kernel", device: 90 }, // 7
  { parent: 5, name: "gemm", kind: "kernel", device: 10 }, // 8
]);

describe("a tree of a block", () => {
  it("sums what is at or below each node", () => {
    expect(totals(step)).toMatchObject({ "": 45, "main;step": 45, "main;step;nn.Module: Net_0;aten::mm": 27 });
    expect(step.sides[0]?.total.device[3]).toBe(90);
  });

  it("is none without calls", () => {
    const nothing = { parent: [], name: [], kind: [], calls: [], self_ns: [], device_self_ns: [] };
    expect(treeOf({ path: "", names: [], kinds: [], calls: nothing })).toBeNull();
  });
});

describe("hiding", () => {
  it("hangs what is left on the nearest kept ancestor and keeps every sum", () => {
    const bare = without(step, hider(step, ["frames", "modules"], "host"));
    expect(totals(bare)).toEqual({
      "": 45,
      main: 45,
      "main;aten::mm": 37, // both merged
      "main;aten::mm;launch": 7,
      "main;aten::mm;launch;gemm": 0,
      "main;aten::mm;gemm": 0,
    });
    expect(bare.sides[0]?.own.host[1]).toBe(8); // of the functions that are gone
    expect(bare.sides[0]?.calls[nodeOf(bare, "main;aten::mm")]).toBe(6);
    expect(bare.sides[0]?.total.device[0]).toBe(100);
  });

  it("keeps modules when only frames go", () => {
    const kept = without(step, hider(step, ["frames"], "host"));
    expect(Object.keys(totals(kept))).toContain("main;nn.Module: Net_0;aten::mm");
  });

  it("leaves out what only passes through, but never operators, threads or the root", () => {
    const deep = grown([
      { parent: 1, name: "run", kind: FRAME },
      { parent: 2, name: "train", kind: FRAME, host: 1 },
      { parent: 3, name: "aten::linear" },
      { parent: 4, name: "aten::mm", host: 999 },
    ]);
    const short = without(deep, hider(deep, ["chains"], "host"));
    expect(totals(short)).toEqual({ "": 1000, main: 1000, "main;aten::linear": 999, "main;aten::linear;aten::mm": 999 });
  });

  it("offers what there is", () => {
    expect(hideable(step)).toEqual(["chains", "frames", "modules", "runtime"]);
    expect(hideable(grown([{ parent: 1, name: "aten::mm" }]))).toEqual([]);
  });

  it("does not merge threads of one name", () => {
    const two = grown([{ parent: 0, name: "main", kind: "thread", host: 4 }]);
    expect(without(two, () => false).parent.length).toBe(3);
  });
});

describe("callers and callees of a name", () => {
  const turned = about(step, "aten::mm");

  it("merges callees below and callers above", () => {
    expect(turned && totals(turned)).toEqual({
      "": 37,
      launch: 7,
      "launch;gemm": 0,
      gemm: 0,
      "<nn.Module: Net_0": 27,
      "<nn.Module: Net_0;<step": 27,
      "<nn.Module: Net_0;<step;<main": 27,
      "<step": 10,
      "<step;<main": 10,
    });
    const callers = turned?.parent.reduce((sum, parent, node) => {
      const isCaller = parent === 0 && turned.up[node] === 1;
      return sum + (isCaller ? at(turned.sides[0]?.total.host ?? [], node) : 0);
    }, 0);
    expect(callers).toBe(37);
  });

  it("counts calls by caller", () => {
    const calls = turned?.sides[0]?.calls ?? [];
    expect(turned && at(calls, nodeOf(turned, "<nn.Module: Net_0"))).toBe(4);
    expect(at(calls, 0)).toBe(6);
  });

  it("counts recursion once", () => {
    const recursive = grown([
      { parent: 1, name: "walk", kind: FRAME, host: 1 },
      { parent: 2, name: "walk", kind: FRAME, host: 2 },
      { parent: 3, name: "walk", kind: FRAME, host: 4 },
    ]);
    const walked = about(recursive, "walk");
    expect(walked && totals(walked)).toEqual({ "": 7, "<main": 7, walk: 6, "walk;walk": 4 });
  });

  it("is nothing for a name that nobody has", () => {
    expect(about(step, "no such")).toBeNull();
  });

  it("stands in the middle of its drawing", () => {
    if (turned === null) throw new Error("nothing");
    const layout = layoutOf(turned, 0, "host", "size");
    expect(layout.row[0]).toBe(3);
    expect(layout.rows.length).toBe(5);
    expect(nameOf(turned, neighbour(turned, layout, 0, "ArrowUp") ?? 0)).toBe("nn.Module: Net_0");
    expect(nameOf(turned, neighbour(turned, layout, 0, "ArrowDown") ?? 0)).toBe("launch");
    expect(neighbour(turned, layout, nodeOf(turned, "<step"), "ArrowDown")).toBe(0);
  });
});

describe("a layout", () => {
  const flat = grown([
    { parent: 1, name: "a", host: 1 },
    { parent: 1, name: "b", host: 3 },
    { parent: 1, name: "nothing" },
    { parent: 3, name: "c", host: 2 },
  ]);

  it("puts the largest first, or keeps the order", () => {
    const bySize = layoutOf(flat, 0, "host", "size");
    expect([...(bySize.rows[1] ?? [])].map((node) => nameOf(flat, node))).toEqual(["b", "a"]);
    const byCall = layoutOf(flat, 0, "host", "call");
    expect([...(byCall.rows[1] ?? [])].map((node) => nameOf(flat, node))).toEqual(["a", "b"]);
    expect(byCall.start[3]).toBe(1);
  });

  it("has threads on top and finds what lies at a place", () => {
    const layout = layoutOf(flat, 0, "host", "size");
    expect(nodeAtPlace(layout, 0, 3)).toBe(1);
    expect(nodeAtPlace(layout, 1, 4.9)).toBe(3);
    expect(nodeAtPlace(layout, 1, 5.1)).toBe(2);
    expect(nodeAtPlace(layout, 2, 4)).toBeNull();
    expect(nodeAtPlace(layout, 9, 1)).toBeNull();
  });

  it("moves between neighbours", () => {
    const layout = layoutOf(flat, 0, "host", "size");
    expect(neighbour(flat, layout, 1, "ArrowDown")).toBe(3);
    expect(neighbour(flat, layout, 3, "ArrowRight")).toBe(2);
    expect(neighbour(flat, layout, 3, "ArrowLeft")).toBeNull();
    expect(neighbour(flat, layout, 1, "ArrowUp")).toBeNull();
  });

  it("draws a lone root, and nothing of no time", () => {
    const lone = treeOf({
      path: "",
      names: ["(all)"],
      kinds: ["trace"],
      calls: { parent: [-1], name: [0], kind: [0], calls: [0], self_ns: [5], device_self_ns: [0] },
    });
    if (lone === null) throw new Error("nothing");
    expect(layoutOf(lone, 0, "host", "size").rows.length).toBe(1);
    const empty = layoutOf(lone, 0, "device", "size");
    expect([empty.whole, empty.rows.length]).toEqual([0, 0]);
    expect(rangeOf(lone, empty, 0)).toEqual({ start: 0, end: 1 });
  });

  it("lays out deep and wide trees fast", () => {
    const rows: Row[] = Array.from({ length: 300 }, (_, i) => ({ parent: i + 1, name: `f${i}`, kind: FRAME }));
    for (let i = 0; i < 20_000; i++) rows.push({ parent: 2 + (i % 299), name: `op${i % 700}`, host: 1 + (i % 13) });
    const tree = grown(rows);
    const began = performance.now();
    const bare = without(tree, hider(tree, [], "host"));
    const layout = layoutOf(bare, 0, "host", "size");
    expect(performance.now() - began).toBeLessThan(5000);
    expect(layout.rows.length).toBe(301);
    expect(layout.whole).toBe(tree.sides[0]?.total.host[0]);
  });
});

describe("search", () => {
  const found = (text: string): [number, number] | null => {
    const matches = matcher(text);
    if (matches === null) return null;
    const { nodes, weight } = search(step, matches, 0, "host");
    return [nodes, weight];
  };

  it("counts every matched subtree once", () => {
    expect(found("NN.module")).toEqual([1, 30]);
    expect(found("/^(nn|aten)/")).toEqual([3, 40]);
    expect(found("/AT.N/i")).toEqual([2, 37]);
    expect(found("no such thing")).toEqual([0, 0]);
    expect(found("  ")).toBeNull();
    expect(found("/")).toBeNull();
  });

  it("takes operators' names as they are", () => {
    expect(matcher("f(x)[0]")?.("call f(x)[0]")).toBe(true);
    expect(() => matcher("/(/")).toThrow(SyntaxError);
  });
});

describe("paths", () => {
  it("lead back to their nodes, and as near as the tree goes", () => {
    for (const node of step.parent.keys()) expect(nodeOf(step, pathOf(step, node))).toBe(node);
    expect(nameOf(step, nodeOf(step, "main;step;gone;deeper"))).toBe("step");
  });

  it("write folded stacks that hold their separators", () => {
    const odd = grown([{ parent: 1, name: "a;b\nc", host: 7 }]);
    expect(folded(odd, 0, "host")).toBe("main;a,b c 7\n");
    expect(folded(step, 0, "device").split("\n")).toHaveLength(3);
  });
});

describe("what is looked at", () => {
  it("travels in the address", () => {
    const look = { ...FIRST_LOOK, rank: "3", weight: "calls" as const, hide: [], find: "/a&b/", node: "main;x" };
    expect(parseLook(formatLook(look))).toEqual(look);
    expect(formatLook(FIRST_LOOK)).toEqual({});
    expect(parseLook({ weight: "nonsense", side: "x", hide: "frames nothing" })).toEqual({ ...FIRST_LOOK, hide: ["frames"] });
  });
});

describe("two sides", () => {
  const tree = treeOf({
    names: ["(all)", "a", "b", "c"],
    kinds: ["trace", "cpu_op"],
    parent: [-1, 0, 0, 0],
    name: [0, 1, 2, 3],
    kind: [0, 1, 1, 1],
    before: { label: "x", divide_by: 2, calls: [0, 2, 2, 0], self_ns: [0, 2000, 600, 0], device_self_ns: [0, 0, 0, 0] },
    after: { label: "y", divide_by: 1, calls: [0, 1, 0, 3], self_ns: [0, 1500, 0, 40], device_self_ns: [0, 0, 0, 0] },
    notice: "",
  });

  it("are compared per step, with the sign in words", () => {
    if (tree === null) throw new Error("nothing");
    const [calls, host] = figuresOf(tree, 1, tree);
    expect(calls?.values).toEqual(["1", "1", "±0 (±0 %)"]);
    expect(host?.values).toEqual(["1.00 µs", "1.50 µs", "+500 ns (+50 %)"]);
    expect(figuresOf(tree, 2, tree)[1]?.values[2]).toBe("−300 ns (gone)");
    expect(figuresOf(tree, 3, tree)[1]?.values[2]).toBe("+40.0 ns (new)");
  });

  it("grow and shrink in steps", () => {
    const level = (before: number, after: number): number => changeOf(before, after).level;
    expect([level(100, 100), level(1000, 1005), level(100, 105), level(100, 120), level(100, 200)]).toEqual([0, 0, 1, 2, 3]);
    expect([level(105, 100), level(120, 100), level(200, 100), level(5, 0), level(0, 0)]).toEqual([-1, -2, -3, -3, 0]);
    expect(changeOf(1, 250).text).toBe("×250");
    expect(changeOf(100, 92).text).toBe("−8.0 %");
  });
});

describe("text and colours", () => {
  it("says what fits a box", () => {
    expect(label("models/vit.py(59): forward")).toBe("forward  vit.py:59");
    expect(label("nn.Module: Linear_0")).toBe("Linear_0");
    const measure = (text: string): number => text.length * 6;
    expect(cutTo("aten::mm", 48, measure)).toBe("aten::mm");
    expect(cutTo("aten::mm", 40, measure)).toBe("aten:…");
    expect(cutTo("aten::mm", 12, measure)).toBe("");
  });

  it("mixes colours", () => {
    expect(mixed("#ff0000", "#0000ff", 0.5)).toBe("#800080");
    expect(rgbOf("#fff")).toEqual([255, 255, 255]);
    expect(luminance([255, 255, 255])).toBeCloseTo(1);
  });
});

it("opens a comparison on the time that changed more", () => {
  const side = (self: number, device: number) => ({ label: "", divide_by: 1, calls: [1], self_ns: [self], device_self_ns: [device] });
  const opened = (device: number) => {
    const tree = treeOf({
      names: ["python"],
      kinds: ["thread"],
      parent: [-1],
      name: [0],
      kind: [0],
      before: side(100, 10),
      after: side(150, device),
      notice: "",
    });
    return tree === null ? null : firstWeight(tree, ["host", "device", "calls"]);
  };
  expect(opened(20)).toBe("host");
  expect(opened(90)).toBe("device");
});

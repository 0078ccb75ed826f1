import { describe, expect, it } from "vitest";
import { beginning, closer, holds, inView, moved, whole } from "../src/widgets/graphs/camera";
import { chosenFrom, nodeOf, parametersOf, partnerOf, unitOf, wrongIn } from "../src/widgets/graphs/address";
import { type GraphContent, type GraphIndex, mainNode, marksByUnit, nodeFacts } from "../src/widgets/graphs/content";
import { sceneDot } from "../src/widgets/graphs/dot";
import { arrangePlainly } from "../src/widgets/graphs/layout";
import { OVERLAYS, paint } from "../src/widgets/graphs/overlay";
import { ALL, pathTo, portsOf, sceneOfLevel, sceneOfUnits, smooth, standsOf, toArrange, unitOfBox } from "../src/widgets/graphs/scene";
import { counterparts, search } from "../src/widgets/graphs/search";

const HOSTILE = "</script><img onerror=alert(1)>";

/** x → mm (with its weight) → relu → output; mm and relu stand in one box of the first level. */
function graph(changes: Partial<GraphContent> = {}): GraphContent {
  const texts = ["", "input", "aten.mm.default", "aten.relu.default", "output", "f32[2]", "parameter", "body", "pointwise", "matmul", "model.py", HOSTILE, "mm", "relu", "x", "float32"];
  const boxes = (labels: number[], kinds: number[], bytes: number[]): GraphContent["units"]["boxes"] => ({
    label: labels,
    detail: labels.map(() => 5),
    owner: labels.map(() => 0),
    kind: kinds,
    dtype: labels.map(() => 15),
    group: labels.map(() => 0),
    module: labels.map(() => 7),
    num_bytes: bytes,
    width: labels.map(() => 80),
    height: labels.map(() => 40),
  });
  return {
    title: "0/0 dynamo",
    texts,
    nodes: {
      name: ["x", "w", "mm", "relu", "output"],
      target: [1, 1, 2, 3, 4],
      type: [5, 5, 5, 5, 0],
      num_bytes: [8, 8, 8, 8, -1],
      module: [0, 7, 7, 7, 0],
      place: [-1, -1, 0, 1, -1],
      group: [0, 0, 0, 0, 0],
      role: [1, 6, 0, 0, 0],
      inputs: [[], [], [0, 1], [2], [3]],
    },
    places: { file: [10, 10], line: [3, 4], source: [11, 0] },
    units: { boxes: boxes([14, 12, 13, 4], [1, 9, 8, 4], [8, 8, 8, -1]), nodes: [[0], [1, 2], [3], [4]], source: [0, 1, 2], target: [1, 2, 3], num_bytes: [8, 8, 8] },
    levels: [
      {
        title: "",
        collapsed_by: "module",
        width: 100,
        height: 300,
        boxes: boxes([14, 7, 4], [1, 8, 4], [8, 8, -1]),
        x: [10, 10, 10],
        y: [10, 110, 210],
        units: [[0], [1, 2], [3]],
        outside: [[], [], []],
        opens: [-1, -1, -1],
        source: [0, 1],
        target: [1, 2],
        num_bytes: [8, 8],
        points: [[50, 50, 50, 110], [50, 150, 50, 210]],
      },
    ],
    flat: -1,
    marks: [{ kind: "break", text: "a branch", units: [2], code: "" }],
    ports: { most: 10, label_length: 34, height: 26, padding: 22, label_char: 8, owner_char: 6.4 },
    ...changes,
  };
}

describe("places in a graph", () => {
  it("opens a box, and all operations", () => {
    expect(standsOf(graph(), []).map((stand) => stand.level)).toEqual([0]);
    expect(standsOf(graph(), [1]).at(-1)).toEqual({ title: "body", level: -1, units: [1, 2] });
    expect(standsOf(graph(), [ALL]).at(-1)).toMatchObject({ level: -1, units: [0, 1, 2, 3] });
    expect(standsOf(graph({ flat: -2 }), [ALL])).toHaveLength(1);
  });
  it("ignores steps that lead nowhere", () => {
    expect(standsOf(graph(), [0])).toHaveLength(1);
    expect(standsOf(graph(), [99, 1])).toHaveLength(1);
  });
  it("knows the way to an operation", () => {
    expect(pathTo(graph(), 2)).toEqual([1]);
    expect(pathTo(graph(), 0)).toEqual([]);
  });
});

describe("drawings", () => {
  it("has every unit in a box", () => {
    const [level] = graph().levels;
    const scene = sceneOfLevel(graph(), level ?? (undefined as never));
    expect([...scene.boxOfUnit]).toEqual([[0, 0], [1, 1], [2, 1], [3, 2]]);
    expect(scene.edgesOfBox).toEqual([[0], [0, 1], [1]]);
    expect(scene.edges[0]).toMatchObject({ path: "M50 50V110", left: 50, right: 50, top: 50, bottom: 110 });
  });
  it("arranges opened operations in rows", () => {
    const asked = toArrange(graph(), [0, 1, 2, 3], []);
    expect(asked.edges).toEqual([[0, 1], [1, 2], [2, 3]]);
    const scene = sceneOfUnits(graph(), [0, 1, 2, 3], [], asked, arrangePlainly(asked));
    const tops = scene.boxes.map((box) => box.y);
    expect(tops).toEqual([...tops].sort((a, b) => a - b));
    expect(new Set(tops).size).toBe(4);
  });
  it("shows what an opened part reads from outside, and who reads it there", () => {
    const ports = portsOf(graph(), [1, 2]);
    expect(ports).toMatchObject([
      { label: "x", owner: "", units: [0], inside: [0], enters: true },
      { label: "output", units: [3], inside: [1], enters: false },
    ]);
    const asked = toArrange(graph(), [1, 2], ports);
    expect(asked.edges).toEqual([[1, 2], [0, 1], [2, 3]]);
    const scene = sceneOfUnits(graph(), [1, 2], ports, asked, arrangePlainly(asked));
    expect(scene.boxes.map(unitOfBox)).toEqual([0, 1, 2, 3]);
    expect(scene.boxes.map((box) => box.outside.length)).toEqual([1, 0, 0, 1]);
    expect(scene.boxOfUnit.get(3)).toBe(3);
    expect(new Set(scene.boxes.map((box) => box.y)).size).toBe(4);
  });
  it("puts many readers into one port", () => {
    const one = graph();
    const many = Array.from({ length: 30 }, (_, reader) => reader + 10);
    const units = { ...one.units, source: many.map(() => 2), target: many };
    const ports = portsOf({ ...one, units }, [2]);
    expect(ports).toHaveLength(one.ports.most);
    expect(ports.flatMap((port) => port.units)).toEqual(many);
  });
  it("bends lines only where they turn", () => {
    expect(smooth([])).toBe("");
    expect(smooth([[0, 0], [10, 20]])).toBe("M0 0C0 10 10 10 10 20");
  });
  it("keeps boxes of a row apart, and survives nothing and one", () => {
    const row = arrangePlainly({ sizes: [[50, 20], [70, 20], [30, 20]], edges: [] });
    expect((row.x[1] ?? 0) - (row.x[0] ?? 0)).toBeGreaterThan(50);
    expect((row.x[2] ?? 0) - (row.x[1] ?? 0)).toBeGreaterThan(70);
    expect(arrangePlainly({ sizes: [], edges: [] }).x).toEqual([]);
    expect(arrangePlainly({ sizes: [[50, 20]], edges: [] }).width).toBe(82);
  });
  it("writes DOT in which no text ends a string", () => {
    const [level] = graph().levels;
    const scene = sceneOfLevel(graph({ texts: graph().texts.map((text) => (text === "body" ? 'a"\\b\n' : text)) }), level ?? (undefined as never));
    const dot = sceneDot(scene, 'say "x"');
    expect(dot).toContain('digraph "say \\"x\\"" {');
    expect(dot).toContain('[label="a\\"\\\\b\\n');
    expect(dot).toContain("  box0 -> box1");
  });
});

describe("search and counterparts", () => {
  it("finds by name, operation, module, line and source", () => {
    expect(search(graph(), "RELU")).toEqual([2]);
    expect(search(graph(), "body model.py:3")).toEqual([1]);
    expect(search(graph(), "img onerror")).toEqual([1]);
    expect(search(graph(), "  ")).toEqual([]);
  });
  it("finds the same operation elsewhere by name, then by line, then by module", () => {
    const renamed = graph({ nodes: { ...graph().nodes, name: ["a", "b", "c", "d", "e"] } });
    expect(counterparts(graph(), 2, graph())).toEqual({ units: [2], by: "name" });
    expect(counterparts(graph(), 2, renamed)).toEqual({ units: [2], by: "both" });
    const moved = { ...renamed, places: { ...renamed.places, line: [30, 40] } };
    expect(counterparts(graph(), 2, moved)).toEqual({ units: [1, 2], by: "module" });
    expect(counterparts(graph(), 3, renamed)).toEqual({ units: [], by: "" });
  });
  it("tells a node's facts", () => {
    expect(mainNode(graph(), 1)).toBe(2);
    expect(nodeFacts(graph(), 2)).toMatchObject({ name: "mm", place: "model.py:3", source: HOSTILE, numBytes: 8 });
    expect([...marksByUnit(graph()).keys()]).toEqual([2]);
  });
});

describe("colours", () => {
  it("gives each box a colour and each colour a meaning", () => {
    const [level] = graph().levels;
    const scene = sceneOfLevel(graph(), level ?? (undefined as never));
    for (const overlay of OVERLAYS) {
      const painted = paint(graph(), scene, overlay, marksByUnit(graph()));
      expect(painted.slots).toHaveLength(3);
      expect(painted.keys.length).toBeGreaterThan(0);
    }
    const kinds = paint(graph(), scene, "kind", new Map());
    expect(kinds.keys.map(({ name, count }) => [name, count])).toContainEqual(["matmul", 1]);
    expect(kinds.mixtures[1]?.map(([, share]) => share)).toEqual([0.5, 0.5]);
  });
});

describe("the camera", () => {
  const drawing = { width: 400, height: 4000 };
  const view = { width: 800, height: 600 };
  it("begins legibly at the top, and can show everything", () => {
    expect(beginning(drawing, view).scale).toBe(1);
    const all = whole(drawing, view);
    const wide = beginning({ width: 9000, height: 9000 }, view, { x: 8000, y: 500 });
    expect(holds(inView(wide, view, 0), { left: 7990, right: 8010, top: 500, bottom: 510 })).toBe(true);
    expect(holds(inView(all, view, 0), { left: 0, right: 400, top: 0, bottom: 4000 })).toBe(true);
  });
  it("zooms about a point that stays, within limits", () => {
    const camera = closer({ x: 0, y: 0, scale: 1 }, drawing, view, 2, 100, 50);
    expect(camera.x + 100 / camera.scale).toBeCloseTo(100);
    expect(closer(camera, drawing, view, 1e6, 0, 0).scale).toBe(3);
    expect(closer(camera, drawing, view, 1e-6, 0, 0).scale).toBeCloseTo(0.1);
  });
  it("keeps some of the drawing in view", () => {
    expect(moved(whole(drawing, view), drawing, view, 0, 1e9).y).toBeLessThan(4000);
  });
});

describe("the address", () => {
  const entry = { block: "graph/0", compile_id: "0/0", stage: "dynamo", stage_title: "Dynamo", function: "f", place: "", num_ops: 2, num_boxes: 4, num_marks: 0 };
  const index: GraphIndex = { graphs: [entry, { ...entry, block: "graph/1", stage: "forward" }, { ...entry, compile_id: "1/0" }], first: 0, same: [], left_out: 0 };
  it("leads back to the same choice", () => {
    const chosen = { left: { number: 1, path: [3, -1], node: "relu" }, right: { number: 0, path: [], node: "" }, overlay: "bytes" as const };
    expect(chosenFrom(parametersOf(chosen, {}), index)).toEqual(chosen);
    expect(parametersOf(chosen, { line: "0:3", graph: "9" })).toMatchObject({ line: "0:3", graph: "1" });
  });
  it("takes nonsense for nothing", () => {
    const nothing = { left: { number: 0, path: [], node: "" }, right: null, overlay: "kind" };
    expect(chosenFrom({ graph: "99", with: "x", colour: "taste" }, index)).toEqual(nothing);
    expect(chosenFrom({ open: "3.-1", node: "relu" }, index).left).toEqual({ number: 0, path: [3, -1], node: "relu" });
    expect(wrongIn({ graph: "99", with: "x", colour: "taste", open: "3.a", open2: "-1", node: "relu" }, index)).toEqual(["graph=99", "open=3.a", "with=x", "colour=taste"]);
    expect(wrongIn({ graph: "1", with: "0", colour: "bytes", open: "3.-1" }, index)).toEqual([]);
    expect(unitOf(graph(), "gone")).toBe(-1);
    expect(nodeOf(graph(), 1)).toBe("mm");
  });
  it("lays the next stage of the same compilation beside a graph", () => {
    expect([partnerOf(index, 0), partnerOf(index, 1), partnerOf(index, 2)]).toEqual([1, 0, 0]);
  });
});

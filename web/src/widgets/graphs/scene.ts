/** What is drawn at once: boxes and lines, from a level of Python's or from what a worker arranged. */
import type { BoxColumns, GraphContent, Level } from "./content";
import type { Arranged, ToArrange } from "./layout";

/** A box. */
export interface SceneBox {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly label: string;
  readonly detail: string;
  readonly owner: string;
  readonly kind: string;
  readonly dtype: string;
  readonly group: string;
  readonly module: string;
  readonly numBytes: number;
  /** Units in it; none where it stands for the rest of the graph. */
  readonly units: readonly number[];
  /** The level that shows its inside; -1: it is arranged when it is opened. */
  readonly opens: number;
}

/** A line from box to box, with the corners of the rectangle around it. */
export interface SceneEdge {
  readonly source: number;
  readonly target: number;
  readonly path: string;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly numBytes: number;
}

/** A drawing. */
export interface Scene {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly SceneBox[];
  readonly edges: readonly SceneEdge[];
  readonly boxOfUnit: ReadonlyMap<number, number>;
  /** The lines that begin and end at each box. */
  readonly edgesOfBox: readonly (readonly number[])[];
}

/** Where the reader is in a graph: boxes that were opened one within the other. */
export type Path = readonly number[];

/** A step of a path: what is drawn there. */
export type Stand =
  | { readonly title: string; readonly level: number }
  | { readonly title: string; readonly level: -1; readonly units: readonly number[] };

/** The number that stands for all operations in a path. */
export const ALL = -1;

/** What is drawn at each step of a path; a step that does not exist ends it. */
export function standsOf(graph: GraphContent, path: Path): Stand[] {
  const stands: Stand[] = [{ title: graph.title, level: 0 }];
  for (const step of path) {
    const last = stands[stands.length - 1];
    if (last === undefined || last.level < 0) break;
    if (step === ALL) {
      const units = graph.units.nodes.map((_, unit) => unit);
      if (graph.flat >= 0) stands.push({ title: "", level: graph.flat });
      else if (graph.flat === -1) stands.push({ title: "", level: -1, units });
      break;
    }
    const level = graph.levels[last.level];
    const units = level?.units[step] ?? [];
    if (level === undefined || units.length < 2) break;
    const title = graph.texts[level.boxes.label[step] ?? 0] ?? "";
    const opens = level.opens[step] ?? -1;
    stands.push(opens >= 0 ? { title, level: opens } : { title, level: -1, units });
  }
  return stands;
}

/** The path to the drawing in which a unit is a box of its own, or the deepest that there is. */
export function pathTo(graph: GraphContent, unit: number): number[] {
  const path: number[] = [];
  let level = graph.levels[0];
  while (level !== undefined) {
    const box = level.units.findIndex((units) => units.includes(unit));
    if (box < 0 || (level.units[box]?.length ?? 0) < 2) return path;
    path.push(box);
    level = graph.levels[level.opens[box] ?? -1];
  }
  return path;
}

/** The drawing of a level. */
export function sceneOfLevel(graph: GraphContent, level: Level): Scene {
  const boxes = level.x.map((x, box) => ({
    ...boxOf(graph, level.boxes, box),
    x,
    y: level.y[box] ?? 0,
    units: level.units[box] ?? [],
    opens: level.opens[box] ?? -1,
  }));
  const edges = level.source.map((source, edge) =>
    edgeOf(source, level.target[edge] ?? 0, pairs(level.points[edge] ?? []), level.num_bytes[edge] ?? -1),
  );
  return sceneOf(level.width, level.height, boxes, edges);
}

/** What is to be arranged when some units are opened: they, and what they read from the rest of the graph. */
export function toArrange(graph: GraphContent, units: readonly number[]): ToArrange {
  const number = new Map(units.map((unit, place) => [unit, place]));
  const sizes = units.map((unit) => [graph.units.boxes.width[unit] ?? 60, graph.units.boxes.height[unit] ?? 26] as const);
  const edges: (readonly [number, number])[] = [];
  graph.units.source.forEach((source, edge) => {
    const from = number.get(source);
    const to = number.get(graph.units.target[edge] ?? -1);
    if (from !== undefined && to !== undefined) edges.push([from, to]);
  });
  return { sizes, edges };
}

/** The drawing of opened units. */
export function sceneOfUnits(graph: GraphContent, units: readonly number[], asked: ToArrange, arranged: Arranged): Scene {
  const boxes = units.map((unit, place) => ({
    ...boxOf(graph, graph.units.boxes, unit),
    x: arranged.x[place] ?? 0,
    y: arranged.y[place] ?? 0,
    units: [unit],
    opens: -1,
  }));
  const edges = asked.edges.map(([source, target], edge) => edgeOf(source, target, pairs(arranged.points[edge] ?? []), -1));
  return sceneOf(arranged.width, arranged.height, boxes, edges);
}

/** A smooth line through points: upright at every one, so that it passes straight between the boxes of a row. */
export function smooth(points: readonly (readonly [number, number])[]): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let [x, y] = first;
  let path = `M${x} ${y}`;
  for (const [nextX, nextY] of rest) {
    const half = Math.round((y + nextY) * 5) / 10;
    path += nextX === x ? `V${nextY}` : `C${x} ${half} ${nextX} ${half} ${nextX} ${nextY}`;
    [x, y] = [nextX, nextY];
  }
  return path;
}

function boxOf(graph: GraphContent, columns: BoxColumns, box: number): Omit<SceneBox, "x" | "y" | "units" | "opens"> {
  const text = (column: readonly number[]): string => graph.texts[column[box] ?? 0] ?? "";
  return {
    label: text(columns.label),
    detail: text(columns.detail),
    owner: text(columns.owner),
    kind: text(columns.kind),
    dtype: text(columns.dtype),
    group: text(columns.group),
    module: text(columns.module),
    numBytes: columns.num_bytes[box] ?? -1,
    width: columns.width[box] ?? 60,
    height: columns.height[box] ?? 26,
  };
}

function edgeOf(source: number, target: number, points: readonly (readonly [number, number])[], numBytes: number): SceneEdge {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const path = smooth(points);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  return { source, target, path, left, right, top: Math.min(...ys), bottom: Math.max(...ys), numBytes };
}

function sceneOf(width: number, height: number, boxes: readonly SceneBox[], edges: readonly SceneEdge[]): Scene {
  const boxOfUnit = new Map<number, number>();
  boxes.forEach((box, place) => box.units.forEach((unit) => boxOfUnit.set(unit, place)));
  const edgesOfBox: number[][] = boxes.map(() => []);
  edges.forEach((edge, place) => {
    edgesOfBox[edge.source]?.push(place);
    edgesOfBox[edge.target]?.push(place);
  });
  return { width, height, boxes, edges, boxOfUnit, edgesOfBox };
}

function pairs(flat: readonly number[]): (readonly [number, number])[] {
  return Array.from({ length: flat.length >> 1 }, (_, i) => [flat[2 * i] ?? 0, flat[2 * i + 1] ?? 0] as const);
}

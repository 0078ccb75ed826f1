/** What is drawn at once: boxes and lines, from a level of Python's or from what a worker arranged. */
import { type BoxColumns, type GraphContent, type Level, mainNode } from "./content";
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
  /** Where it stands for the rest of the graph: the units there. */
  readonly outside: readonly number[];
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
    outside: level.outside[box] ?? [],
    opens: level.opens[box] ?? -1,
  }));
  const edges = level.source.map((source, edge) =>
    edgeOf(source, level.target[edge] ?? 0, pairs(level.points[edge] ?? []), level.num_bytes[edge] ?? -1),
  );
  return sceneOf(level.width, level.height, boxes, edges);
}

/** What stands at the edge of an opened part for units elsewhere: what it reads from, or who reads it. */
export interface Port {
  readonly label: string;
  /** The module whose parameters it reads, where it is one operation. */
  readonly owner: string;
  readonly units: readonly number[];
  readonly width: number;
  /** Places among the opened units that it is linked with. */
  readonly inside: readonly number[];
  readonly enters: boolean;
}

/** The ports of opened units, what they read first. */
export function portsOf(graph: GraphContent, units: readonly number[]): Port[] {
  const { most, label_length, padding, label_char, owner_char } = graph.ports;
  const place = new Map(units.map((unit, at) => [unit, at]));
  const near = [new Map<number, Set<number>>(), new Map<number, Set<number>>()] as const;
  graph.units.source.forEach((source, edge) => {
    const target = graph.units.target[edge] ?? -1;
    const [from, to] = [place.get(source), place.get(target)];
    if (from === undefined && to !== undefined) linked(near[0], source, to);
    if (from !== undefined && to === undefined) linked(near[1], target, from);
  });
  return near.flatMap((side, leaves) => {
    const all = [...side.keys()];
    const alone = all.length <= most ? all.length : most - 1;
    const groups = [...all.slice(0, alone).map((unit) => [unit]), all.slice(alone)].filter((group) => group.length > 0);
    return groups.map((group): Port => {
      const [first = -1, ...more] = group;
      const name = graph.nodes.name[mainNode(graph, first)] ?? "";
      const whole = more.length > 0 ? `${name} +${more.length}` : name;
      const label = whole.length > label_length ? `${whole.slice(0, label_length - 1)}…` : whole;
      const inside = [...new Set(group.flatMap((unit) => [...(side.get(unit) ?? [])]))];
      const owner = more.length > 0 ? "" : (graph.texts[graph.units.boxes.owner[first] ?? 0] ?? "");
      const width = label.length * label_char + (owner === "" ? 0 : (owner.length + 1) * owner_char) + padding;
      return { label, owner, units: group, width: Math.round(width), inside, enters: leaves === 0 };
    });
  });
}

function linked(near: Map<number, Set<number>>, outside: number, inside: number): void {
  near.set(outside, (near.get(outside) ?? new Set()).add(inside));
}

/** What is to be arranged when some units are opened: the ports that lead to them, they, the ports behind them, and all lines. */
export function toArrange(graph: GraphContent, units: readonly number[], ports: readonly Port[]): ToArrange {
  const before = entering(ports);
  const number = new Map(units.map((unit, place) => [unit, before + place]));
  const inner = units.map((unit) => [graph.units.boxes.width[unit] ?? 60, graph.units.boxes.height[unit] ?? 26] as const);
  const outer = ports.map(({ width }) => [width, graph.ports.height] as const);
  const edges: (readonly [number, number])[] = [];
  graph.units.source.forEach((source, edge) => {
    const from = number.get(source);
    const to = number.get(graph.units.target[edge] ?? -1);
    if (from !== undefined && to !== undefined) edges.push([from, to]);
  });
  ports.forEach(({ inside, enters }, port) => {
    for (const place of inside) edges.push(enters ? [port, before + place] : [before + place, units.length + port]);
  });
  return { sizes: [...outer.slice(0, before), ...inner, ...outer.slice(before)], edges };
}

function entering(ports: readonly Port[]): number {
  return ports.filter(({ enters }) => enters).length;
}

/** The drawing of opened units. */
export function sceneOfUnits(graph: GraphContent, units: readonly number[], ports: readonly Port[], asked: ToArrange, arranged: Arranged): Scene {
  const before = entering(ports);
  const inner = units.map((unit) => ({ ...boxOf(graph, graph.units.boxes, unit), units: [unit], outside: [], opens: -1 }));
  const outer = ports.map(({ label, owner, width, units: outside }) => ({
    ...boxOf(graph, graph.units.boxes, outside[0] ?? -1),
    ...{ label, owner, width, detail: "", height: graph.ports.height },
    ...{ units: [], outside, opens: -1 },
  }));
  const all = [...outer.slice(0, before), ...inner, ...outer.slice(before)];
  const boxes = all.map((box, place): SceneBox => ({ ...box, x: arranged.x[place] ?? 0, y: arranged.y[place] ?? 0 }));
  const edges = asked.edges.map(([source, target], edge) => edgeOf(source, target, pairs(arranged.points[edge] ?? []), -1));
  return sceneOf(arranged.width, arranged.height, boxes, edges);
}

/** The unit by which a box is known; -1 where it stands for none. */
export function unitOfBox(box: SceneBox | undefined): number {
  return box?.units[0] ?? box?.outside[0] ?? -1;
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

function boxOf(graph: GraphContent, columns: BoxColumns, box: number): Omit<SceneBox, "x" | "y" | "units" | "outside" | "opens"> {
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
  boxes.forEach((box, place) => {
    for (const unit of box.units.length > 0 ? box.units : box.outside) if (!boxOfUnit.has(unit)) boxOfUnit.set(unit, place);
  });
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

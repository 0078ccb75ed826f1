/** What is open and selected, as parameters of the address. */
import type { GraphContent, GraphIndex } from "./content";
import { mainNode, unitsByName } from "./content";
import { OVERLAYS, type Overlay } from "./overlay";
import type { Path } from "./scene";

/** One graph that is shown. */
export interface Shown {
  /** Its place in the index. */
  readonly number: number;
  readonly path: Path;
  /** Name of the selected node; empty: none. */
  readonly node: string;
}

/** All that the reader chose. */
export interface Chosen {
  readonly left: Shown;
  readonly right: Shown | null;
  readonly overlay: Overlay;
}

type Parameters = Readonly<Record<string, string>>;

/** What an address asks for; what makes no sense there is as if it were absent. */
export function chosenFrom(parameters: Parameters, index: GraphIndex): Chosen {
  const first = shownFrom(parameters["graph"] ?? String(index.first), parameters["open"], parameters["node"], index);
  const left = first ?? { number: index.first, path: [], node: "" };
  const right = shownFrom(parameters["with"], parameters["open2"], parameters["node2"], index);
  const overlay = OVERLAYS.find((one) => one === parameters["colour"]) ?? "kind";
  return { left, right, overlay };
}

/** Those parameters of an address that make no sense whatever a graph holds, as they stand there. */
export function wrongIn(parameters: Parameters, index: GraphIndex): string[] {
  const isGraph = (text: string): boolean => numberOf(text, index) !== null;
  const isPath = (text: string): boolean => /^-?\d+(\.-?\d+)*$/.test(text);
  const isColour = (text: string): boolean => OVERLAYS.some((one) => one === text);
  const checks = { graph: isGraph, open: isPath, with: isGraph, open2: isPath, colour: isColour };
  return Object.entries(checks).flatMap(([key, isRight]) => {
    const value = parameters[key];
    return value === undefined || isRight(value) ? [] : [`${key}=${value}`];
  });
}

/** The parameters of a choice; those that others keep in the address stay. */
export function parametersOf({ left, right, overlay }: Chosen, kept: Parameters): Record<string, string> {
  const own = new Set(["graph", "open", "node", "with", "open2", "node2", "colour"]);
  const found = Object.fromEntries(Object.entries(kept).filter(([name]) => !own.has(name)));
  const set = (name: string, value: string): void => {
    if (value !== "") found[name] = value;
  };
  set("graph", String(left.number));
  set("open", left.path.join("."));
  set("node", left.node);
  set("with", right === null ? "" : String(right.number));
  set("open2", right?.path.join(".") ?? "");
  set("node2", right?.node ?? "");
  set("colour", overlay === "kind" ? "" : overlay);
  return found;
}

/** The unit of a node's name; -1: none. */
export function unitOf(graph: GraphContent, node: string): number {
  return node === "" ? -1 : (unitsByName(graph).get(node) ?? -1);
}

/** The name by which a unit stands in the address. */
export function nodeOf(graph: GraphContent, unit: number): string {
  return unit < 0 ? "" : (graph.nodes.name[mainNode(graph, unit)] ?? "");
}

/** The graph to lay beside one: the next stage of the same compilation, else the next graph. */
export function partnerOf(index: GraphIndex, number: number): number {
  const own = index.graphs[number];
  const next = index.graphs.findIndex((one, place) => place > number && one.compile_id === own?.compile_id);
  if (next >= 0) return next;
  const other = index.graphs.findIndex((one, place) => place !== number && one.compile_id === own?.compile_id);
  return other >= 0 ? other : (number + 1) % index.graphs.length;
}

function shownFrom(graph: string | undefined, open: string | undefined, node: string | undefined, index: GraphIndex): Shown | null {
  const number = numberOf(graph, index);
  if (number === null) return null;
  const path = (open ?? "").split(".").filter((step) => /^-?\d+$/.test(step)).map(Number);
  return { number, path, node: node ?? "" };
}

function numberOf(graph: string | undefined, index: GraphIndex): number | null {
  return graph !== undefined && /^\d+$/.test(graph) && Number(graph) < index.graphs.length ? Number(graph) : null;
}

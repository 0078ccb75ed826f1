/** What the blocks `graphs` and `graph/<n>` hold; columns name texts by number. */

/** The nodes of a graph. */
export interface NodeColumns {
  readonly name: readonly string[];
  readonly target: readonly number[];
  readonly type: readonly number[];
  readonly num_bytes: readonly number[];
  readonly module: readonly number[];
  readonly place: readonly number[];
  readonly group: readonly number[];
  readonly role: readonly number[];
  readonly inputs: readonly (readonly number[])[];
}

/** What is written in boxes, and what they can be coloured by. */
export interface BoxColumns {
  readonly label: readonly number[];
  readonly detail: readonly number[];
  readonly owner: readonly number[];
  readonly kind: readonly number[];
  readonly dtype: readonly number[];
  readonly group: readonly number[];
  readonly module: readonly number[];
  readonly num_bytes: readonly number[];
  readonly width: readonly number[];
  readonly height: readonly number[];
}

/** The finest boxes: operations with their own parameters, and the lines between them. */
export interface Units {
  readonly boxes: BoxColumns;
  readonly nodes: readonly (readonly number[])[];
  readonly source: readonly number[];
  readonly target: readonly number[];
  readonly num_bytes: readonly number[];
}

/** A drawing whose coordinates Python computed. */
export interface Level {
  readonly title: string;
  readonly collapsed_by: string;
  readonly width: number;
  readonly height: number;
  readonly boxes: BoxColumns;
  readonly x: readonly number[];
  readonly y: readonly number[];
  readonly units: readonly (readonly number[])[];
  /** Of boxes that stand for the rest of the graph: the units there. */
  readonly outside: readonly (readonly number[])[];
  readonly opens: readonly number[];
  readonly source: readonly number[];
  readonly target: readonly number[];
  readonly num_bytes: readonly number[];
  readonly points: readonly (readonly number[])[];
}

/** A break, a recompilation or a finding at a line that operations come from. */
export interface GraphMark {
  readonly kind: "break" | "recompile" | "finding";
  readonly text: string;
  readonly units: readonly number[];
  readonly code: string;
}

/** What stands at the edge of an opened part for the rest of the graph: how many on a side at most, and how large. */
export interface PortSizes {
  readonly most: number;
  readonly label_length: number;
  readonly height: number;
  readonly padding: number;
  readonly label_char: number;
  readonly owner_char: number;
}

/** One graph. */
export interface GraphContent {
  readonly title: string;
  readonly texts: readonly string[];
  readonly nodes: NodeColumns;
  readonly places: { readonly file: readonly number[]; readonly line: readonly number[]; readonly source: readonly number[] };
  readonly units: Units;
  readonly levels: readonly Level[];
  /** The level of all operations; -1: arranged here, -2: too large. */
  readonly flat: number;
  readonly marks: readonly GraphMark[];
  readonly ports: PortSizes;
}

/** A graph that can be opened. */
export interface GraphEntry {
  readonly block: string;
  readonly compile_id: string;
  readonly stage: string;
  readonly stage_title: string;
  readonly function: string;
  readonly place: string;
  readonly num_ops: number;
  readonly num_boxes: number;
  readonly num_marks: number;
}

/** All graphs of a page. */
export interface GraphIndex {
  readonly graphs: readonly GraphEntry[];
  readonly first: number;
  readonly same: readonly string[];
  readonly left_out: number;
}

/** What is at one node. */
export interface NodeFacts {
  readonly name: string;
  readonly target: string;
  readonly type: string;
  readonly numBytes: number;
  readonly module: string;
  readonly group: string;
  readonly role: string;
  /** `file:line` with the file's name alone; empty when unknown. */
  readonly place: string;
  readonly file: string;
  readonly line: number;
  readonly source: string;
}

/** A node by its number. */
export function nodeFacts(graph: GraphContent, node: number): NodeFacts {
  const { nodes, places, texts } = graph;
  const text = (column: readonly number[]): string => texts[column[node] ?? 0] ?? "";
  const place = nodes.place[node] ?? -1;
  const file = place < 0 ? "" : (texts[places.file[place] ?? 0] ?? "");
  const line = place < 0 ? 0 : (places.line[place] ?? 0);
  return {
    name: nodes.name[node] ?? "",
    target: text(nodes.target),
    type: text(nodes.type),
    numBytes: nodes.num_bytes[node] ?? -1,
    module: text(nodes.module),
    group: text(nodes.group),
    role: text(nodes.role),
    place: file === "" ? "" : `${file.split(/[\\/]/).at(-1)}:${line}`,
    file,
    line,
    source: place < 0 ? "" : (texts[places.source[place] ?? 0] ?? ""),
  };
}

/** The node that a unit is about: its call, not the parameters that stand in it. */
export function mainNode(graph: GraphContent, unit: number): number {
  const nodes = graph.units.nodes[unit] ?? [];
  return nodes.find((node) => (graph.texts[graph.nodes.role[node] ?? 0] ?? "") === "") ?? nodes[0] ?? -1;
}

/** Units by the names of their nodes. */
export function unitsByName(graph: GraphContent): Map<string, number> {
  const found = new Map<string, number>();
  graph.units.nodes.forEach((nodes, unit) => {
    for (const node of nodes) found.set(graph.nodes.name[node] ?? "", unit);
  });
  return found;
}

/** Marks by unit. */
export function marksByUnit(graph: GraphContent): Map<number, GraphMark[]> {
  const found = new Map<number, GraphMark[]>();
  for (const mark of graph.marks) {
    for (const unit of mark.units) found.set(unit, [...(found.get(unit) ?? []), mark]);
  }
  return found;
}

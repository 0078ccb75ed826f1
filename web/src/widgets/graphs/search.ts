/** Finding operations, and the same operation in another graph. */
import { type GraphContent, mainNode, nodeFacts } from "./content";

/** Units whose nodes have all the words in their name, operation, type, module, line or source text; in the order of the graph. */
export function search(graph: GraphContent, query: string): number[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const found: number[] = [];
  graph.units.nodes.forEach((nodes, unit) => {
    const text = nodes.map((node) => spoken(graph, node)).join("\n").toLowerCase();
    if (words.every((word) => text.includes(word))) found.push(unit);
  });
  return found;
}

/** Units of another graph that stand for the same: the node of the same name and operation, else the same line in the same module, else either. */
export function counterparts(from: GraphContent, unit: number, to: GraphContent): { readonly units: number[]; readonly by: "name" | "both" | "line" | "module" | "" } {
  const sought = nodeFacts(from, mainNode(from, unit));
  const matching = (fits: (facts: ReturnType<typeof nodeFacts>) => boolean): number[] =>
    to.units.nodes.flatMap((nodes, other) => (nodes.some((node) => fits(nodeFacts(to, node))) ? [other] : []));
  const ways = [
    ["name", (one) => one.name === sought.name && lastPart(one.target) === lastPart(sought.target)],
    ["both", (one) => sought.module !== "" && one.module === sought.module && sought.file !== "" && one.file === sought.file && one.line === sought.line],
    ["line", (one) => sought.file !== "" && one.file === sought.file && one.line === sought.line],
    ["module", (one) => sought.module !== "" && one.module === sought.module],
  ] as const satisfies readonly (readonly [string, (facts: ReturnType<typeof nodeFacts>) => boolean])[];
  for (const [by, fits] of ways) {
    const units = matching(fits);
    if (units.length > 0) return { units, by };
  }
  return { units: [], by: "" };
}

function spoken(graph: GraphContent, node: number): string {
  const facts = nodeFacts(graph, node);
  return [facts.name, facts.target, facts.type, facts.module, facts.place, facts.source, facts.group].join("\n");
}

/** The operation without namespace and overload: stages name one operation differently. */
function lastPart(target: string): string {
  const parts = target.split(".").filter((part) => part !== "default" && part !== "Tensor");
  return parts.at(-1) ?? target;
}

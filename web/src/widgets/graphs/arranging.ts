/** The drawing at a place of a graph; a small one is arranged when it is opened. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { GraphContent } from "./content";
import { arrange, MOST_PLAIN } from "./layout";
import { portsOf, type Scene, sceneOfLevel, sceneOfUnits, type Stand, toArrange } from "./scene";

/** A drawing, or why there is none yet, or none at all. */
export type Drawn =
  | { readonly state: "ready"; readonly scene: Scene; readonly plainly: boolean }
  | { readonly state: "arranging" }
  | { readonly state: "failed"; readonly why: string; readonly most: number };

/** The drawing of a stand. */
export function useScene(graph: GraphContent, stand: Stand): Drawn {
  const known = useMemo<Drawn | null>(() => {
    const level = graph.levels[stand.level];
    return level === undefined ? null : { state: "ready", scene: sceneOfLevel(graph, level), plainly: false };
  }, [graph, stand.level]);
  const units = stand.level < 0 && "units" in stand ? stand.units : null;
  const name = units === null ? "" : units.join(" ");
  const [arranged, setArranged] = useState<{ readonly graph: GraphContent; readonly name: string; readonly drawn: Drawn } | null>(null);
  useEffect(() => {
    if (units === null) return;
    let wanted = true;
    const keep = (drawn: Drawn): void => {
      if (wanted) setArranged({ graph, name, drawn });
    };
    const ports = portsOf(graph, units);
    const asked = toArrange(graph, units, ports);
    arrange(asked).then(
      (found) => keep({ state: "ready", scene: sceneOfUnits(graph, units, ports, asked, found), plainly: found.plainly !== undefined }),
      (error: unknown) => keep({ state: "failed", why: String(error), most: MOST_PLAIN }),
    );
    return () => {
      wanted = false;
    };
  }, [graph, name]);
  if (known !== null) return known;
  return arranged?.graph === graph && arranged.name === name ? arranged.drawn : { state: "arranging" };
}

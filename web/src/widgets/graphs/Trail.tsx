/** Where the reader is in a graph: what was opened within what, and all operations at once. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import type { GraphContent } from "./content";
import { ALL, type Path, type Stand } from "./scene";

interface Props {
  readonly graph: GraphContent;
  readonly stands: readonly Stand[];
  readonly path: Path;
  readonly onPath: (path: Path) => void;
}

export function Trail({ graph, stands, path, onPath }: Props): JSX.Element {
  const first = graph.levels[0];
  const all = path[0] === ALL;
  return (
    <nav class="graph-trail" aria-label={t("Opened")}>
      {stands.map((stand, depth) => (
        <button
          type="button"
          key={depth}
          aria-current={depth === stands.length - 1 ? "step" : undefined}
          onClick={() => onPath(path.slice(0, depth))}
        >
          {depth === 0 ? t("Whole graph") : path[depth - 1] === ALL ? t("all operations") : stand.title}
        </button>
      ))}
      {first !== undefined && first.collapsed_by !== "none" && !all && graph.flat > -2 && (
        <button type="button" class="all" onClick={() => onPath([ALL])}>
          {t("Show every operation")}
        </button>
      )}
      <span class="note">{t(BY[first?.collapsed_by ?? "none"] ?? "")}</span>
    </nav>
  );
}

const BY: Readonly<Record<string, string>> = {
  none: "a box per operation",
  module: "collapsed by module",
  line: "collapsed by line",
  range: "collapsed by stretches of the graph",
};

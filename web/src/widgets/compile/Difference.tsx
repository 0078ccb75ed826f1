/** What changed in the graphs: operations beside each other, and all else that both sides tell. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import { Figure } from "../Figure";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import type { DifferenceContent, OperationRow } from "./content";

const SIGNS: Readonly<Record<string, string>> = { added: "+", removed: "−", changed: "~", same: "", skipped: "⋯" };

export function Difference({ blocks, place }: WidgetProps): JSX.Element {
  return (
    <Loaded<DifferenceContent> blocks={blocks} name={place["block"] ?? "graphdiff"}>
      {(content) => (
        <Figure
          title="What changed in the graphs"
          how="+ is only in the side after, − only in the side before, ~ the same operation with another result. Operations are paired in their order; those that are alike on both sides are counted."
          change="Renamed or reordered operations may show as removed and added. Times differ by chance; operations, breaks and fused groups do not."
        >
          <p class="subtitle">{content.sentence}</p>
          {content.missing !== "" && <p class="caveat">{t(content.missing)}</p>}
          {content.graphs.map((graph, place) => (
            <details class="graph-change" key={`${graph.before}|${graph.after}`} open={place === 0 || content.graphs.length < 4}>
              <summary>
                {graph.title} <b class="added">+{graph.added}</b> <b class="removed">−{graph.removed}</b> <b class="changed">~{graph.changed}</b>
              </summary>
              <div class="operation-pairs">
                {graph.rows.map((row, place) => (
                  <Pair key={place} row={row} />
                ))}
              </div>
            </details>
          ))}
          {content.graphs.length === 0 && content.missing === "" && <p class="note">{t("No graph changed.")}</p>}
          <ul class="changes">
            {content.changes.map((change, place) => (
              <li key={place} class={change.sign}>
                <b>{SIGNS[change.sign]}</b> {t(change.what)} <code>{change.text}</code> <span>{change.place}</span>
              </li>
            ))}
          </ul>
        </Figure>
      )}
    </Loaded>
  );
}

function Pair({ row }: { readonly row: OperationRow }): JSX.Element {
  if (row.sign === "skipped") return <p class="skipped">⋯ {t("{count} alike", { count: row.count })}</p>;
  return (
    <div class={`pair ${row.sign}`}>
      <code>{row.before}</code>
      <b aria-label={t(row.sign)}>{SIGNS[row.sign]}</b>
      <code>{row.after}</code>
      <span>{row.place}</span>
    </div>
  );
}

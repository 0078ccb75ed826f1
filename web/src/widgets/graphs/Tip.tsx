/** What a box is, at the pointer. */
import type { JSX } from "preact";
import { formatBytes, formatCount } from "../../data/quantity";
import { t } from "../../i18n/language";
import { type GraphContent, type GraphMark, mainNode, nodeFacts } from "./content";
import { marksOf } from "./overlay";
import type { SceneBox } from "./scene";

interface Props {
  readonly graph: GraphContent;
  readonly box: SceneBox;
  readonly marks: ReadonlyMap<number, readonly GraphMark[]>;
}

export function Tip({ graph, box, marks }: Props): JSX.Element {
  const [unit] = box.units;
  const facts = box.units.length === 1 && unit !== undefined ? nodeFacts(graph, mainNode(graph, unit)) : null;
  return (
    <div class="graph-tip">
      <strong>{facts?.target || box.label}</strong>
      {facts === null ? (
        <span>
          {box.units.length > 1 ? t("{count} operations; double-click opens them", { count: formatCount(box.units.length) }) : box.detail}
          {box.outside.length > 0 && t("outside of the opened part; double-click goes there")}
        </span>
      ) : (
        <code>
          {facts.name} {facts.type}
        </code>
      )}
      {box.numBytes >= 0 && <span>{t("hands on {bytes}", { bytes: formatBytes(box.numBytes) })}</span>}
      {box.module !== "" && <span>{t("module {name}", { name: box.module })}</span>}
      {(facts?.group ?? "") !== "" && <span>{t("fused into {name}", { name: facts?.group ?? "" })}</span>}
      {facts !== null && facts.place !== "" && (
        <span>
          {facts.place} <code>{facts.source}</code>
        </span>
      )}
      {marksOf(box, marks).map((mark) => (
        <em key={mark.text}>! {mark.text}</em>
      ))}
    </div>
  );
}

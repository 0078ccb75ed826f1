/** Everything about the selected box: what it computes, where it comes from, what it reads and who reads it. */
import type { ComponentChildren, JSX } from "preact";
import { formatBytes, formatCount } from "../../data/quantity";
import { t } from "../../i18n/language";
import { type GraphContent, type GraphMark, mainNode, nodeFacts } from "./content";
import { marksOf } from "./overlay";
import type { SceneBox } from "./scene";

const MOST_LISTED = 24;

interface Props {
  readonly graph: GraphContent;
  readonly box: SceneBox;
  readonly marks: ReadonlyMap<number, readonly GraphMark[]>;
  readonly onUnit: (unit: number) => void;
  readonly onOpen: (() => void) | null;
  readonly onClose: () => void;
}

export function Details({ graph, box, marks, onUnit, onOpen, onClose }: Props): JSX.Element {
  const isPort = box.units.length === 0;
  const held = isPort ? box.outside : box.units;
  const [unit] = held;
  const single = held.length === 1 && unit !== undefined;
  const inside = new Set(held);
  const { source, target } = graph.units;
  const reads = unique(source.filter((one, edge) => inside.has(target[edge] ?? -1) && !inside.has(one)));
  const readBy = unique(target.filter((one, edge) => inside.has(source[edge] ?? -1) && !inside.has(one)));
  return (
    <section class="graph-details" aria-label={t("Details")}>
      <header>
        <strong>
          {box.label} {box.owner !== "" && <code>{box.owner}</code>}
        </strong>
        {onOpen !== null && (
          <button type="button" onClick={onOpen}>
            {isPort ? t("Go there") : t("Open {count} operations", { count: formatCount(held.length) })}
          </button>
        )}
        <button type="button" aria-label={t("Close")} onClick={onClose}>
          ×
        </button>
      </header>
      {isPort && <p class="note">{t("Outside of the opened part.")}</p>}
      {marksOf(box, marks).map((mark) => (
        <p class="caveat" key={mark.text}>
          <strong>{t(MARK_TITLES[mark.kind])}</strong>{" "}
          {mark.kind === "finding" ? <a href="#/findings">{mark.code}</a> : null} {mark.text}
        </p>
      ))}
      <dl>{single ? <Operation graph={graph} unit={unit} /> : !isPort && <Several graph={graph} box={box} />}</dl>
      {isPort && held.length > 1 && <Neighbours graph={graph} title="stands for" units={held} onUnit={onUnit} />}
      <Neighbours graph={graph} title="reads" units={reads} onUnit={onUnit} />
      <Neighbours graph={graph} title="is read by" units={readBy} onUnit={onUnit} />
    </section>
  );
}

/** What the kinds of marks are called. */
export const MARK_TITLES: Readonly<Record<GraphMark["kind"], string>> = {
  break: "graph break at this line",
  recompile: "recompilation",
  finding: "finding at this line",
};

function Operation({ graph, unit }: { readonly graph: GraphContent; readonly unit: number }): JSX.Element {
  const main = mainNode(graph, unit);
  const facts = nodeFacts(graph, main);
  const others = (graph.units.nodes[unit] ?? []).filter((node) => node !== main);
  return (
    <>
      <Line name="node">
        <code>{facts.name}</code>
      </Line>
      <Line name="operation">
        <code>{facts.target}</code>
      </Line>
      {facts.type !== "" && (
        <Line name="result">
          <code>{facts.type}</code> {facts.numBytes >= 0 && formatBytes(facts.numBytes)}
        </Line>
      )}
      {facts.module !== "" && (
        <Line name="module">
          <code>{facts.module}</code>
        </Line>
      )}
      {facts.group !== "" && (
        <Line name="fused into">
          <code>{facts.group}</code>
        </Line>
      )}
      {facts.place !== "" && (
        <Line name="line">
          <span title={facts.file}>{facts.place}</span> <code>{facts.source}</code>
        </Line>
      )}
      {others.slice(0, MOST_LISTED).map((node) => {
        const one = nodeFacts(graph, node);
        return (
          <Line name={one.role || "part"} key={node}>
            <code>{one.name}</code> <code>{one.type}</code> {one.numBytes >= 0 && formatBytes(one.numBytes)}
          </Line>
        );
      })}
    </>
  );
}

function Several({ graph, box }: { readonly graph: GraphContent; readonly box: SceneBox }): JSX.Element {
  const counts = new Map<string, number>();
  for (const unit of box.units) {
    const label = graph.texts[graph.units.boxes.label[unit] ?? 0] ?? "";
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  const listed = [...counts].sort(([, a], [, b]) => b - a);
  const more = listed.length - MOST_LISTED;
  return (
    <>
      {box.module !== "" && (
        <Line name="module">
          <code>{box.module}</code>
        </Line>
      )}
      {box.numBytes >= 0 && <Line name="hands on">{formatBytes(box.numBytes)}</Line>}
      <Line name="operations">
        {listed
          .slice(0, MOST_LISTED)
          .map(([label, count]) => (count > 1 ? `${count} ${label}` : label))
          .join(", ")}
        {more > 0 && ` ${t("and {count} more", { count: more })}`}
      </Line>
    </>
  );
}

function Line({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{t(name)}</dt>
      <dd>{children}</dd>
    </div>
  );
}

interface NeighboursProps {
  readonly graph: GraphContent;
  readonly title: string;
  readonly units: readonly number[];
  readonly onUnit: (unit: number) => void;
}

function Neighbours({ graph, title, units, onUnit }: NeighboursProps): JSX.Element | null {
  if (units.length === 0) return null;
  return (
    <p class="graph-neighbours">
      <span>{t(title)}</span>
      {units.slice(0, MOST_LISTED).map((unit) => (
        <button type="button" key={unit} onClick={() => onUnit(unit)}>
          {nodeFacts(graph, mainNode(graph, unit)).name}
        </button>
      ))}
      {units.length > MOST_LISTED && t("and {count} more", { count: units.length - MOST_LISTED })}
    </p>
  );
}

function unique(numbers: readonly number[]): number[] {
  return [...new Set(numbers)];
}

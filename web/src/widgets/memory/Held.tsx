/** What holds the bytes: category, module, line, step by step, and the places themselves as a table. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { formatBytes, formatCount } from "../../data/quantity";
import { t } from "../../i18n/language";
import { remember, type Route } from "../../shell/router";
import { Figure } from "../Figure";
import { type Column, columnsOf, rowsOf } from "../table/model";
import { Table } from "../table/Table";
import { numberIn } from "./address";
import { endOf, type HeldNode, type Holding, type MemoryPart, partsOf, pathTo, placesIn, shareSaid } from "./model";

const HOW =
  "A bar is the share of what is held; its divisions are its own parts. Open one to see of what it is made: category, module, line. A star stands for all of a repeated module. The parts of a whole add up to it exactly; what no place tells is the last.";
const CHANGE =
  "A line counts for what it allocated, not for what keeps it alive: the bytes of an activation go when the backward pass no longer needs them.";
const MIXED =
  "A line with bytes of several categories counts to that with the most, so that sums by category differ from the ledger.";
const FEW = 12;

const COLUMNS: readonly Column[] = [
  { key: "site", title: "allocated at", kind: "place", help: "File and line of your code, or what it was made for." },
  { key: "bytes", title: "bytes", kind: "bytes" },
  { key: "share", title: "share", kind: "share", help: "Of all that was held at that instant." },
  { key: "count", title: "allocations", kind: "count" },
  { key: "category", title: "category", kind: "text", wide: 13 },
  { key: "module", title: "module", kind: "code", wide: 20 },
  { key: "source", title: "line", kind: "code", wide: 36 },
  { key: "function", title: "function", kind: "code", hidden: true },
  { key: "operator", title: "operator", kind: "code", hidden: true },
  { key: "dtype", title: "dtype", kind: "text", hidden: true },
];

export function Held({ part, route }: { readonly part: MemoryPart; readonly route: Route }): JSX.Element | null {
  const [when, setWhen] = useState(0);
  const [opened, setOpened] = useState(0);
  const holding = part.holdings[when] ?? part.holdings[0];
  useEffect(() => {
    const chosen = numberIn(route.parameters, "when") ?? 0;
    const there = part.holdings[chosen];
    setWhen(there === undefined ? 0 : chosen);
    const held = numberIn(route.parameters, "held") ?? 0;
    setOpened((there ?? part.holdings[0])?.nodes[held] === undefined ? 0 : held);
  }, [route, part]);
  const table = useMemo(() => {
    const columns = holding === undefined ? {} : placesIn(holding, opened);
    return { rows: rowsOf(columns), columns: columnsOf(columns, COLUMNS) };
  }, [holding, opened]);
  if (holding === undefined) return null;
  const open = (node: number): void => {
    setOpened(node);
    remember(route.page, { held: node === 0 ? null : String(node) }, true);
  };
  const choose = (index: number): void => {
    setWhen(index);
    setOpened(0);
    remember(route.page, { when: index === 0 ? null : String(index), held: null }, true);
  };
  const tools = part.holdings.length > 1 && (
    <select aria-label={t("When")} value={String(when)} onChange={(event) => choose(Number(event.currentTarget.value))}>
      {part.holdings.map(({ label }, i) => <option key={i} value={String(i)}>{t(label)}</option>)}
    </select>
  );
  return (
    <Figure title="What holds the bytes" how={HOW} change={CHANGE} tools={tools}>
      <Tree key={when} holding={holding} slots={new Map(part.ledger.map(({ name, slot }) => [name, slot]))} opened={opened} onOpen={open} />
      {holding.mixed && <p class="note">{t(MIXED)}</p>}
      {table.rows.length > 0 && <Table name="Places that hold bytes" columns={table.columns} rows={table.rows} kept={{ page: "memory", route, name: "places" }} height={10} />}
    </Figure>
  );
}

interface TreeProps {
  readonly holding: Holding;
  readonly slots: ReadonlyMap<string, number>;
  readonly opened: number;
  readonly onOpen: (node: number) => void;
}

function Tree({ holding: { nodes, label }, slots, opened, onOpen }: TreeProps): JSX.Element {
  const [all, setAll] = useState(false);
  useEffect(() => setAll(false), [opened]);
  const parts = partsOf(nodes, opened);
  const whole = nodes[opened]?.bytes ?? 0;
  const largest = Math.max(1, ...parts.map((i) => nodes[i]?.bytes ?? 0));
  const shown = all || parts.length <= FEW + 1 ? parts : parts.slice(0, FEW);
  const rest = parts.slice(shown.length);
  const back = (event: KeyboardEvent): void => {
    if ((event.key !== "Escape" && event.key !== "Backspace") || opened === 0) return;
    onOpen(nodes[opened]?.parent ?? 0);
    event.preventDefault();
  };
  return (
    <div class="held" onKeyDown={back}>
      <nav class="crumbs" aria-label={t("Where you are")}>
        {pathTo(nodes, opened).map((i) => (
          <button key={i} type="button" aria-current={i === opened ? "true" : undefined} onClick={() => onOpen(i)}>
            {i === 0 ? t("All that is held {when}", { when: t(label) }) : t(nodes[i]?.name ?? "")}
          </button>
        ))}
        <span>{formatBytes(whole)}</span>
      </nav>
      <ul>
        {shown.map((i) => {
          const node = nodes[i];
          const end = endOf(nodes, i);
          return node && <Part key={i} node={node} end={nodes[end] ?? node} whole={whole} largest={largest} slot={slots.get(node.category) ?? 5}
            inner={partsOf(nodes, end).map((part) => nodes[part]?.bytes ?? 0)} onOpen={() => onOpen(end)} />;
        })}
      </ul>
      {rest.length > 0 && (
        <button type="button" class="more" onClick={() => setAll(true)}>
          {t("{number} more, together {bytes}", { number: rest.length, bytes: formatBytes(rest.reduce((sum, i) => sum + (nodes[i]?.bytes ?? 0), 0)) })}
        </button>
      )}
    </div>
  );
}

interface PartProps {
  readonly node: HeldNode;
  /** Itself, or the only thing that it is made of. */
  readonly end: HeldNode;
  readonly whole: number;
  readonly largest: number;
  readonly slot: number;
  /** Bytes of its own parts. */
  readonly inner: readonly number[];
  readonly onOpen: () => void;
}

function Part({ node, end, whole, largest, slot, inner, onOpen }: PartProps): JSX.Element {
  const said = t(node.name);
  const content = (
    <>
      <span class="what">
        <b>{said}</b>
        {node.count > 1 && <small>{t("{number} allocations", { number: formatCount(node.count) })}</small>}
        {end !== node && <small>{t(end.name)}</small>}
        {end.note !== "" && (end.kind === "rest" ? <small>{t(end.note)}</small> : <code>{end.note}</code>)}
      </span>
      <span class="much">{formatBytes(node.bytes)} <small>{shareSaid(node.bytes / Math.max(whole, 1))}</small></span>
      <span class={`length${node.kind === "rest" ? " rest" : ""}`} style={{ width: `${Math.max(0.3, (node.bytes / largest) * 100)}%` }}>
        {(inner.length > 1 ? inner : [1]).map((bytes, i) => <i key={i} class={`slot-${slot}`} style={{ flexGrow: bytes }} />)}
      </span>
    </>
  );
  if (inner.length === 0) return <li class="part">{content}</li>;
  return <li><button type="button" class="part" aria-label={t("Open {name}, {bytes}", { name: said, bytes: formatBytes(node.bytes) })} onClick={onOpen}>{content}</button></li>;
}

/** What grew and what shrank between two memory documents: bars to the right and to the left of no change. */
import type { JSX } from "preact";
import { formatBytes, significant } from "../../data/quantity";
import { t } from "../../i18n/language";
import { Figure } from "../Figure";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";

interface Changed {
  readonly name: string;
  readonly before_bytes: number;
  readonly after_bytes: number;
  readonly change_bytes: number;
  readonly word: "new" | "gone" | "grew" | "shrank";
}

interface Changes {
  readonly title: string;
  readonly rows: readonly Changed[];
  readonly rest_bytes: number;
  readonly num_rest: number;
}

interface MemoryChange {
  readonly before_bytes: number;
  readonly after_bytes: number;
  readonly change_bytes: number;
  readonly groups: readonly Changes[];
  readonly notes: readonly string[];
}

const HOW =
  "Bars to the right grew, bars to the left shrank; the length is the change in bytes, on one scale for all. The signs ▲ and ▼ say the same.";
const CHANGE = "A line that moved counts as gone in one place and new in the other: look for two bars of equal length.";

export function Grown({ blocks, place }: WidgetProps): JSX.Element {
  return <Loaded<MemoryChange> blocks={blocks} name={place["block"] ?? ""}>{(change) => <Drawn change={change} />}</Loaded>;
}

function Drawn({ change }: { readonly change: MemoryChange }): JSX.Element {
  const most = Math.max(1, ...change.groups.flatMap(({ rows }) => rows.map(({ change_bytes }) => Math.abs(change_bytes))));
  return (
    <div class="memory">
    <Figure title="Memory that grew and shrank" how={HOW} change={CHANGE}>
      <p class="whole-change">
        {t("peak")} {formatBytes(change.before_bytes)} → <b>{formatBytes(change.after_bytes)}</b> ({signed(change.change_bytes)}
        {change.before_bytes > 0 && `, ${significant(change.after_bytes / change.before_bytes)}×`})
      </p>
      {change.notes.map((note) => <p key={note} class="caveat"><strong>{t(note)}</strong></p>)}
      {change.groups.length === 0 && <p class="note">{t("Nothing changed.")}</p>}
      {change.groups.map((group) => <Group key={group.title} group={group} most={most} />)}
    </Figure>
    </div>
  );
}

function Group({ group, most }: { readonly group: Changes; readonly most: number }): JSX.Element {
  return (
    <section class="grown" aria-label={t(group.title)}>
      <p class="name">{t(group.title)}</p>
      <ul>{group.rows.map((row) => <Row key={row.name} row={row} most={most} />)}</ul>
      {group.num_rest > 0 && <p class="note">{t("and {number} more, together {change}", { number: group.num_rest, change: signed(group.rest_bytes) })}</p>}
    </section>
  );
}

function Row({ row, most }: { readonly row: Changed; readonly most: number }): JSX.Element {
  const grew = row.change_bytes > 0;
  const length = `${Math.max(0.4, (Math.abs(row.change_bytes) / most) * 50)}%`;
  return (
    <li>
      <span class="what">{t(row.name)}</span>
      <span class="much">
        <b>{grew ? "▲" : "▼"} {signed(row.change_bytes)}</b> <small>{t(row.word)}, {formatBytes(row.before_bytes)} → {formatBytes(row.after_bytes)}</small>
      </span>
      <span class="axis"><i class={grew ? "grew" : "shrank"} style={grew ? { left: "50%", width: length } : { right: "50%", width: length }} /></span>
    </li>
  );
}

function signed(bytes: number): string {
  return `${bytes > 0 ? "+" : ""}${formatBytes(bytes)}`;
}

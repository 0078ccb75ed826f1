/** Operators, kernels, source lines, modules and copies of one rank, each in a table of its own. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Blocks } from "../../data/blocks";
import { formatCount } from "../../data/quantity";
import { t } from "../../i18n/language";
import { leaveOut } from "../../shell/notice";
import { noteSome, type Route } from "../../shell/router";
import { Figure } from "../Figure";
import { rowsOf, telling } from "../table/model";
import { Table } from "../table/Table";
import { exact } from "../table/write";
import type { WidgetProps } from "../widget";
import { Chosen, type Way } from "./Chosen";
import { type Listed, SHEETS, type Sheet } from "./columns";
import { Ranks } from "./Ranks";
import { Tabs } from "./Tabs";

const PAGE = "operators";

interface OperatorTables {
  readonly tables: Readonly<Record<string, unknown>>;
  /** Sums of a table, by its name. */
  readonly notes: Readonly<Record<string, string>>;
  readonly notice: string | null;
}

export function Operators(props: WidgetProps): JSX.Element {
  return (
    <Ranks<OperatorTables> {...props}>
      {(content, rank, chooser) => <Sheets content={content} rank={rank} chooser={chooser} blocks={props.blocks} route={props.route} />}
    </Ranks>
  );
}

interface SheetsProps {
  readonly content: OperatorTables;
  readonly rank: string;
  readonly chooser: JSX.Element | null;
  readonly blocks: Blocks;
  readonly route: Route;
}

function Sheets({ content, rank, chooser, blocks, route }: SheetsProps): JSX.Element | null {
  const sheets = useMemo(() => SHEETS.filter(({ key }) => listedOf(content, key).num_listed > 0), [content]);
  const asked = route.page === PAGE ? route.parameters["tab"] : undefined;
  const [key, setKey] = useState(asked ?? "");
  useEffect(() => {
    if (asked === undefined) return;
    setKey(asked);
    if (!sheets.some((one) => one.key === asked)) leaveOut([`tab=${asked}`]);
  }, [route]);
  const sheet = sheets.find((one) => one.key === key) ?? sheets[0];
  if (sheet === undefined) return null;
  const tabs = sheets.map((one) => ({ key: one.key, title: t(one.title), number: formatCount(listedOf(content, one.key).num_rows) }));
  const choose = (chosen: string): void => {
    setKey(chosen);
    noteSome(PAGE, { tab: chosen, find: null, sort: null, where: null });
  };
  return (
    <Figure title="Where the time goes, by name" how={sheet.how} tools={chooser} change="A capture with shapes tells rates, one with stacks source lines, one with modules names of layers; the profiler's own cost makes short operators look longer than they are.">
      <Tabs tabs={tabs} chosen={sheet.key} label={t("Tables")} onChoose={choose}>
        {content.notes[sheet.key] !== undefined && <p class="sums">{t(content.notes[sheet.key] ?? "")}</p>}
        <SheetTable key={`${rank} ${sheet.key}`} sheet={sheet} listed={listedOf(content, sheet.key)} route={route} rank={rank} traced={blocks.has(`trace/${rank}`)} />
      </Tabs>
      {content.notice !== null && <p class="note">{t(content.notice)}</p>}
    </Figure>
  );
}

interface SheetProps {
  readonly sheet: Sheet;
  readonly listed: Listed;
  readonly route: Route;
  readonly rank: string;
  /** Whether the page has a timeline and a flame graph to go to. */
  readonly traced: boolean;
}

function SheetTable({ sheet, listed, route, rank, traced }: SheetProps): JSX.Element {
  const [row, setRow] = useState<number | null>(null);
  const rows = useMemo(() => rowsOf(listed), [listed]);
  const columns = useMemo(() => telling(listed, sheet.columns), [sheet, listed]);
  const term = row === null ? "" : sheet.term(rows, row);
  const ways: Way[] = [];
  if (traced && term !== "") {
    ways.push({ label: "Show in the timeline", page: "timeline", parameters: { rank, find: term } });
    ways.push({ label: "Show in the flame graph", page: "flame", parameters: { rank, find: term } });
  }
  const whole = row === null ? "" : String(exact(rows.cell(listed["name"] === undefined ? (sheet.columns[0]?.key ?? "") : "name", row)));
  const where = row === null ? null : rows.cell("where", row);
  return (
    <>
      <Table name={sheet.title} columns={columns} rows={rows} initialSort={sheet.sort} kept={{ page: PAGE, route }} selected={row} onSelect={setRow} />
      {row !== null && (
        <Chosen name={whole} facts={typeof where === "string" && where !== whole ? [where] : []} ways={ways} onClose={() => setRow(null)} />
      )}
    </>
  );
}

function listedOf(content: OperatorTables, key: string): Listed {
  return content.tables[key] as Listed;
}

/** Why devices were idle and where the host waited for them, gap by gap, each with its place in the timeline. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { formatNs } from "../../data/quantity";
import { t } from "../../i18n/language";
import { leaveOut } from "../../shell/notice";
import { noteSome, type Route } from "../../shell/router";
import { Figure } from "../Figure";
import { Chosen, type Way } from "../operators/Chosen";
import { Ranks } from "../operators/Ranks";
import type { Kept } from "../table/asked";
import { type Column, type Columnar, rowsOf, type Sort, telling } from "../table/model";
import { Table } from "../table/Table";
import type { WidgetProps } from "../widget";
import { GAPS, GROUPS, STREAMS, SYNCS } from "./columns";
import { around } from "./range";
import { type Part, ShareBar } from "./ShareBar";

interface IdleTables {
  readonly span_ns: number;
  readonly of: "device" | "host";
  readonly headline: string;
  /** What the bar parts the idle time by: a column of the gaps. */
  readonly by: "cause" | "doing";
  readonly apart: readonly string[];
  readonly causes: readonly (Omit<Part, "name"> & { readonly cause: string })[];
  readonly groups: Columnar;
  readonly gaps: Columnar;
  readonly unlisted: string | null;
  readonly syncs: Columnar;
  readonly sync_note: string;
  readonly streams: Columnar;
}

const PAGE = "idle";
const BY_LENGTH: readonly Sort[] = [{ key: "dur_ns", down: true }];
const BY_TOTAL: readonly Sort[] = [{ key: "total_ns", down: true }];
const BY_IDLE: readonly Sort[] = [{ key: "idle_ns", down: true }];

const HOW_DEVICE =
  "Each gap is attributed on two axes: why the device had run dry, and what the host did most of the gap. Press a cause to list only its gaps; select a gap to go to it.";
const HOW_HOST =
  "Each gap is attributed to what the host did most of it. Press one of these to list only its gaps; select a gap to go to it.";

interface PartProps {
  readonly content: IdleTables;
  readonly rank: string;
  /** Whether the page has a timeline to go to. */
  readonly traced: boolean;
  readonly route: Route;
}

export function Idle(props: WidgetProps): JSX.Element {
  return (
    <Ranks<IdleTables> {...props}>
      {(content, rank, chooser) => {
        const parts = { content, rank, traced: props.blocks.has(`trace/${rank}`), route: props.route };
        return (
          <div key={rank}>
            {content.causes.length > 0 && <Gaps {...parts} chooser={chooser} />}
            <Waits {...parts} />
            {rowsOf(content.streams).length > 0 && (
              <Figure title="Gaps of each stream" how="Between one piece of work of a stream and its next: whether the host had launched that in time. A stream may rest while others work.">
                <Simple name="Gaps of each stream" list={content.streams} columns={STREAMS} sort={BY_IDLE} kept={{ page: PAGE, route: props.route, name: "streams" }} />
              </Figure>
            )}
          </div>
        );
      }}
    </Ranks>
  );
}

function Gaps({ content, rank, traced, route, chooser }: PartProps & { readonly chooser: JSX.Element | null }): JSX.Element {
  const asked = route.page === PAGE ? route.parameters["cause"] : undefined;
  const [cause, setCause] = useState("");
  const [row, setRow] = useState<number | null>(null);
  const rows = useMemo(() => rowsOf(content.gaps), [content]);
  const kept = useMemo(() => chosenRows(content.gaps, content.by, cause), [content, cause]);
  const columns = useMemo(() => telling(content.gaps, GAPS).filter(({ key }) => key !== "cause" || content.by === "cause"), [content]);
  const parts = content.causes.map((one) => ({ ...one, name: one.cause }));
  useEffect(() => {
    if (asked === undefined) return;
    if (parts.some(({ name }) => name === asked)) setCause(asked);
    else leaveOut([`cause=${asked}`]);
  }, [route]);
  const choose = (name: string): void => {
    setCause(name);
    setRow(null);
    noteSome(PAGE, { cause: name || null });
  };
  const title = content.of === "device" ? "Why the device was idle" : "Time outside of operators";
  const of = (key: string): string => String(row === null ? "" : (kept.cell(key, row) ?? ""));
  const ways: Way[] = [];
  if (row !== null && traced) {
    ways.push({ label: "Show in the timeline", page: "timeline", parameters: around(rank, Number(of("start_ns")), Number(of("dur_ns")), content.span_ns) });
  }
  return (
    <Figure title={title} tools={chooser} how={content.by === "cause" ? HOW_DEVICE : HOW_HOST}
      change="A capture with Python stacks names functions and lines where this one names operators.">
      <p class="idle-said">
        {t(content.headline)} {content.apart.length > 0 && <span class="note">{t("Set apart: {what}.", { what: content.apart.map((part) => t(part)).join("; ") })}</span>}
      </p>
      <ShareBar parts={parts} label={t(title)} chosen={cause} onChoose={choose} />
      <h2>{t("The longest gaps")}</h2>
      <Table key={cause} name="The longest gaps" columns={columns} rows={cause === "" ? rows : kept} initialSort={BY_LENGTH} kept={{ page: PAGE, route, name: "gaps" }} selected={row} onSelect={setRow} height={10} />
      {row !== null && (
        <Chosen name={t("{gap} from {start} on", { gap: formatNs(Number(of("dur_ns"))), start: formatNs(Number(of("start_ns"))) })}
          facts={[`${t(of("cause"))}; ${t("meanwhile the host")} ${t(of("doing"))} ${of("name")} ${of("where")}`.trim(), ...between(of("previous"), of("next"))]}
          ways={ways} onClose={() => setRow(null)} />
      )}
      {content.unlisted !== null && <p class="note">{t(content.unlisted)}</p>}
      <h2>{t("All gaps, by cause and by what the host did")}</h2>
      <Simple name="Idle time by cause" list={content.groups} columns={content.by === "cause" ? GROUPS : GROUPS.slice(1)} sort={BY_TOTAL} kept={{ page: PAGE, route, name: "causes" }} />
    </Figure>
  );
}

function Waits({ content, rank, traced, route }: PartProps): JSX.Element | null {
  const [row, setRow] = useState<number | null>(null);
  const rows = useMemo(() => rowsOf(content.syncs), [content]);
  const columns = useMemo(() => telling(content.syncs, SYNCS), [content]);
  if (rows.length === 0) return null;
  const of = (key: string): string => String(row === null ? "" : (rows.cell(key, row) ?? ""));
  const ways: Way[] = traced ? [{ label: "Show in the timeline", page: "timeline", parameters: { rank, find: of("name") } }] : [];
  return (
    <Figure title="Synchronisation points" how="In each of these calls the host waits until a device has caught up, and can launch nothing meanwhile."
      change="A wait that costs little here may cost much more where the device is slower or the batch larger: what counts is what is idle after it.">
      <p class="idle-said">{t(content.sync_note)}</p>
      <Table name="Synchronisation points" columns={columns} rows={rows} kept={{ page: PAGE, route, name: "waits" }} selected={row} onSelect={setRow} height={10} />
      {row !== null && <Chosen name={of("name")} facts={[of("where")].filter((place) => place !== "")} ways={ways} onClose={() => setRow(null)} />}
    </Figure>
  );
}

interface ListProps {
  readonly name: string;
  readonly list: Columnar;
  readonly columns: readonly Column[];
  readonly sort: readonly Sort[];
  readonly kept: Kept;
}

function Simple({ name, list, columns, sort, kept }: ListProps): JSX.Element {
  const rows = useMemo(() => rowsOf(list), [list]);
  const seen = useMemo(() => telling(list, columns), [list, columns]);
  return <Table name={name} columns={seen} rows={rows} initialSort={sort} kept={kept} height={10} />;
}

/** The gaps of one cause, or in which the host did one thing; all without one. */
function chosenRows(gaps: Columnar, by: string, cause: string): ReturnType<typeof rowsOf> {
  const rows = rowsOf(gaps);
  if (cause === "") return rows;
  const places = Array.from({ length: rows.length }, (_, i) => i).filter((i) => rows.cell(by, i) === cause);
  return { length: places.length, cell: (column, row) => rows.cell(column, places[row] ?? -1) };
}

function between(previous: string, next: string): string[] {
  if (previous === "" && next === "") return [];
  return [t("between {previous} and {next}", { previous: previous || "–", next: next || "–" })];
}

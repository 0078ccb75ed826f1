/**
 * A table that holds many rows: only those in view are in the page. API: see `model.ts`.
 *
 * A click on a heading sorts, with Shift as a further key; the box filters words, "Filter columns" quantities (`>1ms`,
 * `<5%`); arrows, Page, Home and End move, Enter selects, `/` goes to the box. What is shown can be copied as Markdown
 * or CSV.
 */
import type { JSX } from "preact";
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { language, t } from "../../i18n/language";
import { type Kept, useAsked } from "./asked";
import { CellOf } from "./Cells";
import { Head } from "./Head";
import { type Column, isWords, type Rows, type Sort } from "./model";
import { arranged, clicked } from "./order";
import { mostInPage, roomsOf, ROW_PX, rowsInView, scrollFor, SHORT_CH, widthOf } from "./range";
import { Tools } from "./Tools";

/** What a table is given. */
export interface TableProps {
  /** What the rows are: accessible name, and name of a saved file; English. */
  readonly name: string;
  readonly columns: readonly Column[];
  readonly rows: Rows;
  readonly initialSort?: readonly Sort[];
  /** Where in the address it keeps what is asked of it. */
  readonly kept?: Kept;
  /** The row that is selected, as an index of `rows`; it is brought into view. */
  readonly selected?: number | null;
  /** A row was clicked, or chosen with Enter. */
  readonly onSelect?: (row: number) => void;
  /** Rows in view at once; 16 unless told. */
  readonly height?: number;
}

const HEIGHT = 16;
/** Up to so many rows all are in the page, so that they may be as high as their words need. */
const WRAPPED = 60;
/** Scrolling by less does not draw anew. */
const STRIDE_PX = 4 * ROW_PX;
const NOTHING: readonly Sort[] = [];

export function Table({ name, columns, rows, initialSort = NOTHING, kept, selected = null, onSelect, height = HEIGHT }: TableProps): JSX.Element {
  const id = useId();
  const initial = useMemo(() => ({ find: "", bounds: null, sort: initialSort.filter(({ key }) => columns.some((column) => column.key === key)) }), []);
  const [{ find, bounds, sort }, ask] = useAsked(columns, initial, kept);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(() => new Set(columns.filter((one) => one.hidden).map(({ key }) => key)));
  const [active, setActive] = useState(0);
  const [scrolled, setScrolled] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const order = useMemo(() => arranged(columns, rows, { find, bounds: bounds ?? {}, sort }), [columns, rows, find, bounds, sort]);
  const seen = useMemo(() => columns.filter(({ key }) => !hidden.has(key)), [columns, hidden]);
  const widths = useMemo(() => seen.map((column) => widthOf(column, t(column.title), rows)), [seen, rows, language()]);
  const wraps = rows.length <= WRAPPED;
  const rooms = roomsOf(widths, seen.map(({ kind }) => isWords(kind)));

  const reveal = (place: number): void => {
    const box = scroller.current;
    if (box === null) return;
    const [row, head] = [wraps ? box.querySelectorAll<HTMLElement>("tbody tr")[place] : undefined, headOf(box)];
    if (row !== undefined) box.scrollTop = Math.min(row.offsetTop - head, Math.max(box.scrollTop, row.offsetTop + row.offsetHeight - box.clientHeight));
    else box.scrollTop = scrollFor(place, box.scrollTop, box.clientHeight - head);
  };
  const move = (place: number): void => {
    const to = Math.max(0, Math.min(order.length - 1, place));
    setActive(to);
    reveal(to);
  };
  useLayoutEffect(() => {
    const place = selected === null ? -1 : order.indexOf(selected);
    setActive(Math.max(0, place));
    if (place >= 0) reveal(place);
    else if (selected === null && scroller.current !== null) scroller.current.scrollTop = 0;
  }, [order, selected]);

  const press = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(((scroller.current?.clientHeight ?? 0) - ROW_PX) / ROW_PX) - 1);
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: order.length - 1,
    };
    const to = moves[event.key];
    const row = order[active];
    if (to !== undefined) move(to);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") scroller.current?.scrollBy({ left: event.key === "ArrowLeft" ? -120 : 120 });
    else if ((event.key === "Enter" || event.key === " ") && row !== undefined) onSelect?.(row);
    else return;
    event.preventDefault();
  };

  const number = Math.min(order.length, height);
  const { first, end } = wraps ? { first: 0, end: order.length } : rowsInView(scrolled, number * ROW_PX, order.length);
  const slots = wraps ? order.length + 1 : mostInPage(number * ROW_PX); // elements are used again for the rows that come into view
  const inPage = active >= first && active < end;
  const spans = Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i);
  return (
    <div class="full-table" onKeyDown={searchBySlash}>
      <Tools name={name} selection={{ columns: seen, rows, order, title: (column) => t(column.title) }} columns={columns} hidden={hidden} onHidden={setHidden}
        find={find} onFind={(text) => ask({ find: text })} filtering={bounds !== null} onFiltering={(on) => ask({ bounds: on ? {} : null })} />
      <div class="table-scroll" ref={scroller} style={{ maxHeight: `${(height + (bounds === null ? 1.6 : 2.9)) * ROW_PX}px` }}
        onScroll={(event) => setScrolled(Math.floor(event.currentTarget.scrollTop / STRIDE_PX) * STRIDE_PX)}>
        <table role="grid" tabIndex={0} aria-label={t(name)} aria-rowcount={order.length + 1} aria-colcount={seen.length}
          aria-activedescendant={inPage ? `${id}-${active}` : undefined} class={`${onSelect === undefined ? "" : "selectable"}${wraps ? " wraps" : ""}`}
          style={{ minWidth: `calc(${rooms.join(" + ")})` }} onKeyDown={press}>
          <colgroup>
            {seen.map(({ key }, i) => <col key={key} style={i === 0 && (widths[0] ?? 0) > SHORT_CH ? {} : { width: rooms[i] ?? "" }} />)}
          </colgroup>
          <Head columns={seen} sort={sort} onSort={(column, further) => ask({ sort: clicked(sort, column, further) })}
            bounds={bounds} onBound={(key, text) => ask({ bounds: { ...bounds, [key]: text } })} />
          <tbody>
            <Gap rows={first} columns={seen.length} />
            {spans.map((place) => {
              const row = order[place] ?? 0;
              return (
                <tr key={place % slots} id={`${id}-${place}`} aria-rowindex={place + 2} aria-selected={onSelect === undefined ? undefined : row === selected}
                  class={place === active ? "active" : ""} onClick={() => { setActive(place); onSelect?.(row); }}>
                  {seen.map((column) => <CellOf key={column.key} column={column} value={rows.cell(column.key, row)} />)}
                </tr>
              );
            })}
            <Gap rows={order.length - end} columns={seen.length} />
          </tbody>
        </table>
        {order.length === 0 && <p class="note">{rows.length === 0 ? t("There is nothing to list.") : t("No row fits the filter.")}</p>}
      </div>
    </div>
  );
}

/** The room of rows that are not in the page. */
function Gap({ rows, columns }: { readonly rows: number; readonly columns: number }): JSX.Element | null {
  if (rows <= 0) return null;
  return (
    <tr class="gap" aria-hidden="true" style={{ height: `${rows * ROW_PX}px` }}>
      <td colSpan={columns} />
    </tr>
  );
}

function headOf(box: HTMLElement): number {
  return box.querySelector("thead")?.offsetHeight ?? ROW_PX;
}

function searchBySlash(event: KeyboardEvent): void {
  const { currentTarget } = event;
  if (event.key !== "/" || event.target instanceof HTMLInputElement || !(currentTarget instanceof HTMLElement)) return;
  event.preventDefault();
  event.stopPropagation();
  currentTarget.querySelector<HTMLInputElement>("input[type=search]")?.focus();
}

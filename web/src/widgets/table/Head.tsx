/** Headings of a table, by which it is sorted, and below them what is asked of the quantities. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import { parseBound } from "./bounds";
import { type Column, isWords, type Kind, type Sort } from "./model";

interface Props {
  readonly columns: readonly Column[];
  readonly sort: readonly Sort[];
  readonly onSort: (column: Column, further: boolean) => void;
  /** What is asked of columns; null while nobody asks. */
  readonly bounds: Readonly<Record<string, string>> | null;
  readonly onBound: (key: string, text: string) => void;
}

const EXAMPLES: Readonly<Partial<Record<Kind, string>>> = { ns: ">1ms", bytes: ">1MiB", share: ">5%", rate: ">1G" };

export function Head({ columns, sort, onSort, bounds, onBound }: Props): JSX.Element {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map((column) => <Heading key={column.key} column={column} sort={sort} onSort={onSort} />)}
      </tr>
      {bounds !== null && (
        <tr class="table-bounds">
          {columns.map(({ key, kind, title }) => (
            <td key={key} class={isWords(kind) ? "words" : ""}>
              {!isWords(kind) && kind !== "spark" && (
                <input value={bounds[key] ?? ""} placeholder={EXAMPLES[kind] ?? ">10"} aria-label={t("Filter: {column}", { column: t(title) })}
                  aria-invalid={(bounds[key] ?? "").trim() !== "" && parseBound(kind, bounds[key] ?? "") === null}
                  onInput={(event) => onBound(key, event.currentTarget.value)} />
              )}
            </td>
          ))}
        </tr>
      )}
    </thead>
  );
}

function Heading({ column, sort, onSort }: { readonly column: Column } & Pick<Props, "sort" | "onSort">): JSX.Element {
  const place = sort.findIndex(({ key }) => key === column.key);
  const held = sort[place];
  return (
    <th scope="col" class={isWords(column.kind) ? "words" : ""} aria-sort={held === undefined ? "none" : held.down ? "descending" : "ascending"}>
      <button type="button" title={helpOf(column)} onClick={(event) => onSort(column, event.shiftKey)}>
        {t(column.title)}
        <span class="sort-mark" aria-hidden="true">
          {held === undefined ? "" : `${held.down ? "↓" : "↑"}${sort.length > 1 ? String(place + 1) : ""}`}
        </span>
      </button>
    </th>
  );
}

function helpOf({ help, kind }: Column): string | undefined {
  const bars = kind === "share" ? t("A full bar is 100 %.") : "";
  const said = help === undefined ? bars : `${t(help)} ${bars}`.trim();
  return said === "" ? undefined : said;
}

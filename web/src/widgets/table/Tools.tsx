/** What stands above a table: the filter, which columns are shown, and ways to take the rows along. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatCount } from "../../data/quantity";
import { download } from "../../export/download";
import { type Selection, toCsv, toMarkdown } from "../../export/table";
import { t } from "../../i18n/language";
import { copyText } from "./copy";
import { type Column, isWords } from "./model";

interface Props {
  readonly name: string;
  readonly selection: Selection;
  readonly columns: readonly Column[];
  readonly hidden: ReadonlySet<string>;
  readonly onHidden: (hidden: ReadonlySet<string>) => void;
  readonly find: string;
  readonly onFind: (find: string) => void;
  readonly filtering: boolean;
  readonly onFiltering: (on: boolean) => void;
}

/** So many rows need no filter. */
const FEW = 5;

export function Tools({ name, selection, columns, hidden, onHidden, find, onFind, filtering, onFiltering }: Props): JSX.Element {
  const [told, setTold] = useState("");
  const all = selection.rows.length;
  const number = selection.order.length;
  const copy = (text: string): void => {
    void copyText(text).then((done) => {
      setTold(done ? t("Copied.") : t("The browser does not allow copying; save the file instead."));
      setTimeout(() => setTold(""), 2500);
    });
  };
  return (
    <div class="tools table-tools">
      {all > FEW && columns.some(({ kind }) => isWords(kind)) && (
        <input type="search" value={find} placeholder={t("Filter")} aria-label={t("Filter: {column}", { column: t(name) })}
          title={t("Words that must all occur; -word must not. Press / to come here.")} onInput={(event) => onFind(event.currentTarget.value)} />
      )}
      {all > FEW && columns.some(({ kind }) => !isWords(kind) && kind !== "spark") && (
        <button type="button" aria-pressed={filtering} title={t("Such as >1ms, <5%, 10us..2ms, 2k")} onClick={() => onFiltering(!filtering)}>{t("Filter columns")}</button>
      )}
      <Menu label={t("Columns")}>
        {columns.map(({ key, title }) => (
          <label key={key}>
            <input type="checkbox" checked={!hidden.has(key)} disabled={!hidden.has(key) && hidden.size === columns.length - 1}
              onChange={() => onHidden(toggled(hidden, key))} />
            {t(title)}
          </label>
        ))}
      </Menu>
      <Menu label={t("Copy")}>
        <button type="button" onClick={() => copy(toMarkdown(selection))}>{t("Copy as Markdown")}</button>
        <button type="button" onClick={() => copy(toCsv(selection))}>{t("Copy as CSV")}</button>
        <button type="button" onClick={() => download(`${t(name)}.csv`, `\ufeff${toCsv(selection)}`, "text/csv;charset=utf-8")}>{t("Save CSV")}</button>
      </Menu>
      <span class="number" role="status">
        {told !== "" ? told : number === all ? (all === 1 ? t("1 row") : t("{n} rows", { n: formatCount(all) })) : t("{n} of {all} rows", { n: formatCount(number), all: formatCount(all) })}
      </span>
    </div>
  );
}

/** Choices that open below their button, and close when the focus leaves them or Escape is pressed. */
function Menu({ label, children }: { readonly label: string; readonly children: JSX.Element | readonly JSX.Element[] }): JSX.Element {
  return (
    <details class="table-menu"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !event.currentTarget.open) return;
        event.currentTarget.open = false;
        event.currentTarget.querySelector("summary")?.focus();
        event.stopPropagation();
      }}
      onFocusOut={(event) => {
        const to = event.relatedTarget;
        if (to instanceof Node && !event.currentTarget.contains(to)) event.currentTarget.open = false;
      }}>
      <summary>{label}</summary>
      <div>{children}</div>
    </details>
  );
}

function toggled(set: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const changed = new Set(set);
  if (!changed.delete(key)) changed.add(key);
  return changed;
}

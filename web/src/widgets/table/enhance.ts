/** Static tables that can be sorted by their headings and copied; their text stays as it is. */
import { textsToCsv, textsToMarkdown } from "../../export/table";
import { onLanguage, t } from "../../i18n/language";
import { copyText } from "./copy";

const LEAST_ROWS = 6;
const FACTORS: Readonly<Record<string, number>> = {
  ns: 1e-9, µs: 1e-6, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600,
  B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50,
};
const PREFIXES: Readonly<Record<string, number>> = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 };

/** Make every static table of more than five rows sortable, once; those that widgets draw are left alone. */
export function enhanceTables(root: ParentNode): void {
  for (const table of root.querySelectorAll<HTMLTableElement>("table:not([role=grid]):not([data-enhanced])")) {
    const body = table.tBodies[0];
    const head = table.tHead?.rows[0];
    if (body === undefined || head === undefined || table.tBodies.length > 1 || body.rows.length < LEAST_ROWS) continue;
    if ([...table.rows].some((row) => [...row.cells].some((cell) => cell.colSpan > 1 || cell.rowSpan > 1))) continue;
    if (table.closest("[data-widget], .heat") !== null || table.classList.contains("heat")) continue;
    table.dataset["enhanced"] = "";
    makeSortable(body, head);
    addCopying(table);
  }
}

/** A cell's text as what it is sorted by: a quantity where it begins with one, else the text; null for an empty one. */
export function sortKey(text: string): number | string | null {
  const said = text.trim();
  if (said === "" || said === "–" || said === "-") return null;
  const found = /^([-−+]?)(\d[\d,]*\.?\d*(?:e[-+]?\d+)?)(?:\s*([A-Za-zµ%×]+\S*))?/.exec(said);
  if (found === null) return said.toLowerCase();
  const [, sign = "", digits = "", unit = ""] = found;
  const value = Number(digits.replaceAll(",", ""));
  const size = value * (FACTORS[unit] ?? (unit.length > 1 || unit === "k" ? (PREFIXES[unit.charAt(0)] ?? 1) : 1));
  return sign === "-" || sign === "−" ? -size : size;
}

/** Which of two cells comes first when they go up: quantities before words, missing ones last. */
export function compareKeys(a: number | string | null, b: number | string | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, "en", { numeric: true });
  return typeof a === "number" ? -1 : 1;
}

function makeSortable(body: HTMLTableSectionElement, head: HTMLTableRowElement): void {
  const first = [...body.rows];
  for (const [column, heading] of [...head.cells].entries()) {
    const text = heading.textContent ?? "";
    if (text.trim() === "") continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const keys = new Map(first.map((row) => [row, sortKey(row.cells[column]?.textContent ?? "")]));
      const quantities = [...keys.values()].some((key) => typeof key === "number");
      const turns = quantities ? ["descending", "ascending"] : ["ascending", "descending"];
      const next = turns[turns.indexOf(heading.getAttribute("aria-sort") ?? "") + 1] ?? null; // after both: as it was
      for (const other of head.cells) other.removeAttribute("aria-sort");
      if (next !== null) heading.setAttribute("aria-sort", next);
      body.append(...(next === null ? first : sorted(first, keys, next === "descending")));
    });
  }
}

function sorted<T>(rows: readonly T[], keys: ReadonlyMap<T, number | string | null>, down: boolean): T[] {
  return rows.toSorted((one, other) => {
    const [a, b] = [keys.get(one) ?? null, keys.get(other) ?? null];
    return a === null || b === null || !down ? compareKeys(a, b) : compareKeys(b, a);
  });
}

function addCopying(table: HTMLTableElement): void {
  const bar = document.createElement("p");
  bar.className = "tools copy-table";
  const texts = (): string[][] => [...table.rows].map((row) => [...row.cells].map((cell) => (cell.textContent ?? "").replace(/\s+/g, " ").trim()));
  const ways: readonly (readonly [string, () => string])[] = [
    ["Copy as Markdown", () => textsToMarkdown(texts())],
    ["Copy as CSV (as shown)", () => textsToCsv(texts())],
  ];
  for (const [label, write] of ways) {
    const button = document.createElement("button");
    button.type = "button";
    const named = (): void => {
      button.textContent = t(label);
    };
    named();
    onLanguage(named);
    button.addEventListener("click", () => {
      void copyText(write()).then((done) => {
        button.textContent = done ? t("Copied.") : t("The browser does not allow copying.");
        setTimeout(named, 2000);
      });
    });
    bar.append(button);
  }
  (table.closest(".scroll") ?? table).after(bar);
}

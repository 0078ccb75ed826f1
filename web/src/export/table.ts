/** Tables as other programs take them: CSV by RFC 4180, and Markdown. */
import { type Column, isWords, type Rows } from "../widgets/table/model";
import { exact, shown, unitOf } from "../widgets/table/write";

/** What is exported: these columns of these rows, in this order. */
export interface Selection {
  readonly columns: readonly Column[];
  readonly rows: Rows;
  /** Indices of the rows. */
  readonly order: ArrayLike<number>;
  /** A title as it is to be written: translated, say. */
  readonly title: (column: Column) => string;
}

/** CSV with a line of headings. Numbers are exact, their unit is in the heading; a missing value is an empty field. */
export function toCsv(selection: Selection): string {
  const { columns, rows, order, title } = selection;
  const lines = [columns.map((column) => field(heading(column, title)))];
  for (let i = 0; i < order.length; i++) {
    const row = order[i] ?? 0;
    lines.push(columns.map((column) => field(exact(rows.cell(column.key, row)))));
  }
  return csvLines(lines);
}

/** A table of GitHub's Markdown, with cells as they are shown. */
export function toMarkdown({ columns, rows, order, title }: Selection): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const lines = [
    line(columns.map((column) => escaped(title(column)))),
    line(columns.map(({ kind }) => (isWords(kind) ? ":--" : "--:"))),
  ];
  for (let i = 0; i < order.length; i++) {
    const row = order[i] ?? 0;
    lines.push(
      line(
        columns.map((column) => {
          const value = rows.cell(column.key, row);
          const text = column.kind === "place" ? String(exact(value)) : shown(column, value);
          return column.kind === "code" && value !== null ? code(text) : escaped(text);
        }),
      ),
    );
  }
  return `${lines.join("\n")}\n`;
}

/** CSV of texts that are not typed, such as those of a table in the page. */
export function textsToCsv(lines: readonly (readonly string[])[]): string {
  return csvLines(lines.map((line) => line.map(field)));
}

/** Markdown of texts that are not typed; the first line holds the headings. */
export function textsToMarkdown(lines: readonly (readonly string[])[]): string {
  const [head = [], ...body] = lines;
  const rows = [head.map(escaped), head.map(() => "---"), ...body.map((line) => line.map(escaped))];
  return `${rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n`;
}

/**
 * One field of CSV. A text that a spreadsheet would take for a formula gets an apostrophe before it; numbers are safe,
 * a negative one is one.
 */
export function field(value: string | number): string {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const safe = /^\s*[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) || safe !== safe.trim() ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvLines(lines: readonly (readonly string[])[]): string {
  return lines.map((fields) => `${fields.join(",")}\r\n`).join("");
}

function heading(column: Column, title: Selection["title"]): string {
  const unit = unitOf(column);
  return unit === "" ? title(column) : `${title(column)} (${unit})`;
}

/** Text that Markdown shows as it is, on one line. */
function escaped(text: string): string {
  return oneLine(text).replace(/[\\`*_{}[\]<>|~#&]/g, "\\$&");
}

/** Code of one line, fenced with more backticks than it holds; a pipe must be escaped even there. */
function code(text: string): string {
  const plain = oneLine(text);
  if (plain === "") return "";
  const fence = "`".repeat(Math.max(0, ...(plain.match(/`+/g) ?? []).map((run) => run.length)) + 1);
  const pad = fence.length > 1 ? " " : "";
  return `${fence}${pad}${plain.replaceAll("|", "\\|")}${pad}${fence}`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/**
 * What a table shows. Its API, in short:
 *
 * ```tsx
 * <Table name="Kernels" columns={COLUMNS} rows={rows} initialSort={[{ key: "total_ns", down: true }]}
 *        selected={row} onSelect={setRow} />
 * ```
 *
 * `columns` says what each column holds (`Column`), `rows` answers for one cell at a time (`Rows`). For a columnar block of
 * a page, `rowsOf(record)` makes `rows` of the record's lists; `columnsOf(record, columns)` leaves out the columns that it
 * does not have or that hold nothing, `telling(record, columns)` also those that hold only zeros. Keep both objects from
 * one rendering to the next (module constants, `useMemo`): new ones are sorted anew. For other columns give the table
 * another `key`. Titles and help are English and translated in the table; cells are shown as they are.
 */

/** What a cell holds, which decides how it is written, aligned, sorted and exported. */
export type Kind =
  | "text"
  | "code"
  | "place" // "path/to/file.py:12 function"; its beginning is cut first
  | "ns" // a duration in nanoseconds
  | "bytes"
  | "count"
  | "number" // three significant digits and the column's unit
  | "rate" // a number with an SI prefix: 1.2e12 of unit "FLOP/s" is 1.20 TFLOP/s
  | "share" // of 1, with a bar, which is full at 100 %
  | "spark"; // numbers, drawn as a small line

/** A cell's value; null where there is none. A spark takes a list of numbers. */
export type Cell = string | number | null | readonly number[];

/** One column. */
export interface Column {
  /** Its name in the rows. */
  readonly key: string;
  /** English. */
  readonly title: string;
  readonly kind: Kind;
  /** What it means, in a sentence; English. */
  readonly help?: string;
  /** Of a number or rate; English, short. */
  readonly unit?: string;
  /** Not shown until the reader asks for it. */
  readonly hidden?: boolean;
  /** Least width in characters of a column of words; 24 unless told. */
  readonly wide?: number;
}

/** Rows, answered cell by cell. */
export interface Rows {
  readonly length: number;
  /** The value in a column, by its key. */
  cell(column: string, row: number): Cell;
}

/** A column by which rows are sorted; the first of several counts most. */
export interface Sort {
  readonly key: string;
  /** The largest first. Rows without a value come last either way. */
  readonly down: boolean;
}

/** Lists of equal length by name, as blocks carry long tables; other fields of a record are ignored. */
export type Columnar = Readonly<Record<string, unknown>>;

/** Rows of a columnar block. An empty list is a column that was left out. */
export function rowsOf(record: Columnar): Rows {
  const lists = new Map<string, readonly Cell[]>();
  for (const [key, list] of Object.entries(record)) if (Array.isArray(list)) lists.set(key, list as readonly Cell[]);
  return {
    length: Math.max(0, ...[...lists.values()].map((list) => list.length)),
    cell: (column, row) => lists.get(column)?.[row] ?? null,
  };
}

/** The columns of which a columnar block holds any value but null. */
export function columnsOf(record: Columnar, columns: readonly Column[]): readonly Column[] {
  return columns.filter(({ key }) => {
    const list = record[key];
    return Array.isArray(list) && list.some((value) => value !== null);
  });
}

/** The columns of which a columnar block says something: any value but null, nothing and an empty text. */
export function telling(record: Columnar, columns: readonly Column[]): readonly Column[] {
  return columns.filter(({ key }) => {
    const list = record[key];
    return Array.isArray(list) && list.some((value) => value !== null && value !== 0 && value !== "");
  });
}

/** Rows of a list of objects. */
export function rowsOfList(list: readonly Readonly<Record<string, Cell>>[]): Rows {
  return { length: list.length, cell: (column, row) => list[row]?.[column] ?? null };
}

/** Whether a column holds words rather than quantities. */
export function isWords(kind: Kind): boolean {
  return kind === "text" || kind === "code" || kind === "place";
}

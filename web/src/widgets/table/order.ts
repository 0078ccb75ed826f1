/** Which rows are shown, and in which order; pure, so that it can be tested without a browser. */
import { parseBound, within } from "./bounds";
import { type Cell, type Column, isWords, type Rows, type Sort } from "./model";

/** What the reader asked for. */
export interface Wanted {
  /** Words that must all occur in the words of a row; one with `-` before it must not. */
  readonly find: string;
  /** What is asked of a column's quantities, by its key. */
  readonly bounds: Readonly<Record<string, string>>;
  readonly sort: readonly Sort[];
}

/** Indices of the rows that are wanted, in the order that is wanted; rows that are equal keep their order. */
export function arranged(columns: readonly Column[], rows: Rows, wanted: Wanted): Uint32Array {
  const kept = filtered(columns, rows, wanted);
  const keys = wanted.sort
    .filter(({ key }) => columns.some((column) => column.key === key))
    .map(({ key, down }) => ({ values: ranks(rows, key), sign: down ? -1 : 1 }));
  if (keys.length === 0) return kept;
  return kept.sort((a, b) => {
    for (const { values, sign } of keys) {
      const [x, y] = [values[a] ?? NaN, values[b] ?? NaN];
      if (x === y) continue;
      if (Number.isNaN(x) || Number.isNaN(y)) {
        if (Number.isNaN(x) && Number.isNaN(y)) continue;
        return Number.isNaN(x) ? 1 : -1; // without a value: last, whichever way
      }
      return (x < y ? -1 : 1) * sign;
    }
    return a - b;
  });
}

/** The keys after a click on a heading: down first for quantities, up for words, then the other way, then not at all. */
export function clicked(sort: readonly Sort[], column: Column, further: boolean): readonly Sort[] {
  const first = !isWords(column.kind);
  const place = sort.findIndex(({ key }) => key === column.key);
  const old = sort[place];
  const next = old === undefined ? { key: column.key, down: first } : old.down === first ? { key: column.key, down: !first } : null;
  if (!further) return next === null ? [] : [next];
  const rest = place < 0 ? sort : sort.toSpliced(place, 1);
  return next === null ? rest : place < 0 ? [...rest, next] : sort.with(place, next);
}

function filtered(columns: readonly Column[], rows: Rows, { find, bounds }: Wanted): Uint32Array {
  const terms = find.toLowerCase().split(/\s+/).filter((term) => term !== "" && term !== "-");
  const asked = columns.flatMap(({ key, kind }) => {
    const bound = isWords(kind) ? null : parseBound(kind, bounds[key] ?? "");
    return bound === null ? [] : [{ key, bound }];
  });
  const words = terms.length > 0 ? texts(columns, rows) : [];
  const kept = new Uint32Array(rows.length);
  let number = 0;
  for (let row = 0; row < rows.length; row++) {
    const said = words[row] ?? "";
    if (!terms.every((term) => (term.startsWith("-") ? !said.includes(term.slice(1)) : said.includes(term)))) continue;
    if (asked.every(({ key, bound }) => within(bound, figure(rows.cell(key, row))))) kept[number++] = row;
  }
  return kept.slice(0, number);
}

const said = new WeakMap<Rows, { readonly of: string; readonly texts: string[] }>();

/** The words of each row, in small letters, made once. */
function texts(columns: readonly Column[], rows: Rows): readonly string[] {
  const keys = columns.filter(({ kind }) => isWords(kind)).map(({ key }) => key);
  const of = keys.join("\n");
  const known = said.get(rows);
  if (known?.of === of) return known.texts;
  const made = Array.from({ length: rows.length }, (_, row) =>
    keys.map((key) => rows.cell(key, row) ?? "").join("\n").toLowerCase(),
  );
  said.set(rows, { of, texts: made });
  return made;
}

const ranked = new WeakMap<Rows, Map<string, Float64Array>>();

/** Numbers that order as the column's values do, made once; NaN for a missing one. */
function ranks(rows: Rows, key: string): Float64Array {
  let of = ranked.get(rows);
  if (of === undefined) ranked.set(rows, (of = new Map<string, Float64Array>()));
  let made = of.get(key);
  if (made === undefined) of.set(key, (made = rank(rows, key)));
  return made;
}

function rank(rows: Rows, key: string): Float64Array {
  const words = new Set<string>();
  for (let row = 0; row < rows.length; row++) {
    const value = rows.cell(key, row);
    if (typeof value === "string") words.add(value);
  }
  const { compare } = new Intl.Collator("en", { numeric: true });
  const place = new Map([...words].sort(compare).map((word, i) => [word, i]));
  return Float64Array.from({ length: rows.length }, (_, row) => {
    const value = rows.cell(key, row);
    return typeof value === "string" ? (place.get(value) ?? NaN) : (figure(value) ?? NaN);
  });
}

function figure(value: Cell): number | null {
  return typeof value === "number" ? value : typeof value === "object" && value !== null ? (value.at(-1) ?? null) : null;
}

/** What the blocks `compile` and `graphdiff` hold. */

/** One compilation. */
export interface CompilationRow {
  readonly compile_id: string;
  readonly function: string;
  readonly place: string;
  readonly outcome: string;
  readonly reason: string;
  readonly total_s: number | null;
  readonly backward_s: number | null;
  readonly phases_s: readonly number[];
  readonly cache: string;
  readonly spared_s: number | null;
  readonly is_resume: boolean;
  readonly num_ops: number | null;
  readonly attempts: number;
}

/** A guard that failed, its values left out; columns are compilations. */
export interface GuardRow {
  readonly guard: string;
  readonly kind: string;
  readonly failed: readonly number[];
  readonly also: readonly number[];
  readonly said: readonly string[];
}

/** A frame that was compiled more than once. */
export interface RecompiledFrame {
  readonly frame: string;
  readonly function: string;
  readonly place: string;
  readonly columns: readonly string[];
  readonly refused: number;
  readonly guards: readonly GuardRow[];
  readonly seen: readonly { readonly name: string; readonly kind: string; readonly values: readonly string[]; readonly became_dynamic: boolean }[];
  readonly compile_s: readonly (number | null)[];
  readonly left_out: number;
}

/** The block `compile`. */
export interface CompileContent {
  readonly phases: readonly string[];
  readonly totals_s: readonly number[];
  /** Colour of each phase. */
  readonly slots: readonly number[];
  readonly compile_s: number;
  readonly background: Readonly<Record<string, number>>;
  readonly cache: string;
  readonly hits: number;
  readonly misses: number;
  readonly compilations: readonly CompilationRow[];
  readonly frames: readonly RecompiledFrame[];
}

/** Operations of two graphs that stand beside each other. */
export interface OperationRow {
  readonly sign: "added" | "removed" | "changed" | "same" | "skipped";
  readonly before: string;
  readonly after: string;
  readonly place: string;
  readonly node: string;
  readonly count: number;
}

/** The block `graphdiff`. */
export interface DifferenceContent {
  readonly sentence: string;
  readonly graphs: readonly {
    readonly title: string;
    readonly before: string;
    readonly after: string;
    readonly added: number;
    readonly removed: number;
    readonly changed: number;
    readonly rows: readonly OperationRow[];
  }[];
  readonly changes: readonly { readonly sign: string; readonly what: string; readonly text: string; readonly place: string }[];
  readonly missing: string;
}

/** A part of a bar: where it begins and ends as shares of the longest bar, its phase, its seconds. */
export interface Part {
  readonly phase: number;
  readonly start: number;
  readonly end: number;
  readonly seconds: number;
}

/** The parts of a bar, in the order of the phases; parts without time are left out. */
export function partsOf(phases_s: readonly number[], longest: number): Part[] {
  let sum = 0;
  const parts: Part[] = [];
  phases_s.forEach((seconds, phase) => {
    if (!(seconds > 0) || !(longest > 0)) return;
    parts.push({ phase, start: sum / longest, end: (sum + seconds) / longest, seconds });
    sum += seconds;
  });
  return parts;
}

/** What stands in a cell of the matrix: the guard failed first, failed behind another one, or did not fail. */
export function cellOf(row: GuardRow, column: number): { readonly state: "first" | "also" | "held"; readonly said: string } {
  const first = row.failed.indexOf(column);
  if (first >= 0) return { state: "first", said: row.said[first] ?? "" };
  const also = row.also.indexOf(column);
  return also >= 0 ? { state: "also", said: row.said[row.failed.length + also] ?? "" } : { state: "held", said: "" };
}

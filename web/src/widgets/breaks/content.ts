/** What the block `breaks` holds, and how it is laid out; pure. */

/** What to write instead. */
export interface Advice {
  readonly title: string;
  readonly why: string;
  readonly before: string;
  readonly after: string;
  readonly setting: string;
  readonly caution: string;
}

/** Kinds of notes, the gravest first. */
export const KINDS = ["break", "limit", "skipped", "recompile", "guard", "follows", "finding"] as const;
export type Kind = (typeof KINDS)[number];

/** What happens at a line. */
export interface LineNote {
  readonly line: number;
  readonly kind: Kind;
  readonly count: number;
  readonly title: string;
  readonly remark: string;
  readonly explanation: string;
  readonly advice: readonly Advice[];
  readonly stack: readonly string[];
  readonly code: string;
}

/** One of the user's files. */
export interface NotedFile {
  readonly file: string;
  readonly name: string;
  readonly is_read: boolean;
  readonly pieces: readonly { readonly first_line: number; readonly lines: readonly string[] }[];
  readonly notes: readonly LineNote[];
}

/** The block. */
export interface BreaksContent {
  readonly files: readonly NotedFile[];
}

/** A line as it is shown; a gap stands for lines that are not known. */
export type Row =
  | { readonly gap: true; readonly line: number }
  | { readonly gap: false; readonly line: number; readonly text: string; readonly notes: readonly LineNote[] };

/** Lines of a file, with the notes of the kinds that are shown. */
export function rowsOf(file: NotedFile, shown: ReadonlySet<Kind>): Row[] {
  const rows: Row[] = [];
  let next = 1;
  for (const { first_line: first, lines } of file.pieces) {
    if (first > next) rows.push({ gap: true, line: next });
    lines.forEach((text, place) => {
      const line = first + place;
      rows.push({ gap: false, line, text, notes: file.notes.filter((note) => note.line === line && shown.has(note.kind)) });
    });
    next = first + lines.length;
  }
  return rows;
}

/** How many notes of each kind a file has, gravest kinds first; kinds without any are left out. */
export function countsOf(notes: readonly LineNote[]): (readonly [Kind, number])[] {
  return KINDS.map((kind) => [kind, notes.filter((note) => note.kind === kind).length] as const).filter(([, count]) => count > 0);
}

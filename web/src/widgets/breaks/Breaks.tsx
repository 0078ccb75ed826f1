/** The user's source with breaks, recompilations and findings beside the lines at which they happen. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { t } from "../../i18n/language";
import { leaveOut } from "../../shell/notice";
import { note, parseRoute } from "../../shell/router";
import { Figure } from "../Figure";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import { type BreaksContent, countsOf, type Kind, KINDS, type NotedFile, rowsOf } from "./content";
import { Notes, TITLES } from "./Notes";

export function Breaks({ blocks, place, route }: WidgetProps): JSX.Element {
  return (
    <Loaded<BreaksContent> blocks={blocks} name={place["block"] ?? "breaks"}>
      {(content) => <Source content={content} parameters={route.parameters} />}
    </Loaded>
  );
}

interface SourceProps {
  readonly content: BreaksContent;
  readonly parameters: Readonly<Record<string, string>>;
}

function Source({ content, parameters }: SourceProps): JSX.Element {
  const asked = useMemo(() => lineFrom(parameters["line"], content), [parameters["line"], content]);
  const [number, setNumber] = useState(asked?.file ?? 0);
  const [open, setOpen] = useState<number>(asked?.line ?? gravest(content.files[0]));
  const [hidden, setHidden] = useState<ReadonlySet<Kind>>(new Set(["follows"]));
  useEffect(() => {
    if (asked === null) return leaveOut(parameters["line"] === undefined ? [] : [`line=${parameters["line"]}`]);
    setNumber(asked.file);
    setOpen(asked.line);
  }, [asked, parameters]);
  const file = content.files[number] ?? content.files[0];
  if (file === undefined) return <p class="note">{t("Nothing to show.")}</p>;
  const choose = (line: number): void => {
    setOpen(line);
    note("compile", { ...parseRoute(location.hash)?.parameters, line: `${number}:${line}` });
  };
  const counts = countsOf(file.notes);
  const toggle = (kind: Kind): void => setHidden(new Set(hidden.has(kind) ? [...hidden].filter((one) => one !== kind) : [...hidden, kind]));
  const tools = (
    <>
      {content.files.length > 1 && (
        <select
          aria-label={t("File")}
          value={String(number)}
          onChange={(event) => {
            const next = Number(event.currentTarget.value);
            setNumber(next);
            setOpen(gravest(content.files[next]));
          }}
        >
          {content.files.map((one, place) => (
            <option value={String(place)} key={one.file}>
              {one.name} ({one.notes.length})
            </option>
          ))}
        </select>
      )}
      {counts.map(([kind, count]) => (
        <button type="button" key={kind} aria-pressed={!hidden.has(kind)} class={`note-${kind}`} onClick={() => toggle(kind)}>
          <Sign kind={kind} /> {t(TITLES[kind])} {count}
        </button>
      ))}
    </>
  );
  return (
    <Figure title="Breaks and recompilations in the source" how={HOW} change={CHANGE} tools={tools}>
      <p class="source-name">
        <code title={file.file}>{file.name}</code>
        {!file.is_read && <span class="note"> {t("only the lines that the records hold: the file was not at hand")}</span>}
      </p>
      <Lines file={file} shown={new Set(KINDS.filter((kind) => !hidden.has(kind)))} open={open} onOpen={choose} />
    </Figure>
  );
}

const HOW =
  "The mark in the margin counts how often a break was met at the line; what happened there and what to write instead stand below it. A guard is marked at the line that tied the compiled code to a value. Breaks that only follow from another one are hidden at first.";
const CHANGE =
  "Mend root breaks first: what follows from them goes away with them. A break that is met once, outside of the step, costs next to nothing.";

interface LinesProps {
  readonly file: NotedFile;
  readonly shown: ReadonlySet<Kind>;
  readonly open: number;
  readonly onOpen: (line: number) => void;
}

function Lines({ file, shown, open, onOpen }: LinesProps): JSX.Element {
  const table = useRef<HTMLDivElement>(null);
  useEffect(() => table.current?.querySelector(`[data-line="${open}"]`)?.scrollIntoView({ block: "nearest" }), [open, file]);
  const rows = rowsOf(file, shown);
  const digits = `${String(rows.at(-1)?.line ?? 1).length + 1}ch`;
  return (
    <div class="source-lines" ref={table} style={{ "--digits": digits }}>
      {rows.map((row) => {
        if (row.gap) return <div class="source-gap" key={`gap${row.line}`} aria-hidden="true">⋯</div>;
        const [first] = row.notes;
        const count = row.notes.reduce((sum, one) => sum + (one.kind === "break" ? one.count : 0), 0) || (first?.count ?? 0);
        return (
          <div key={row.line} data-line={row.line} class={`source-row${first === undefined ? "" : ` noted note-${first.kind}`}${open === row.line ? " asked" : ""}`}>
            <div class="source-code">
              {first === undefined ? (
                <span class="source-mark" />
              ) : (
                <button
                  type="button"
                  class="source-mark"
                  aria-expanded={open === row.line}
                  aria-label={t("Line {line}: {what}", { line: row.line, what: row.notes.map((one) => one.title).join("; ") })}
                  onClick={() => onOpen(open === row.line ? -1 : row.line)}
                >
                  <Sign kind={first.kind} />
                  {count > 1 && <small>{count}×</small>}
                </button>
              )}
              <span class="source-number">{row.line}</span>
              <code>{row.text || " "}</code>
            </div>
            {first !== undefined && open !== row.line && (
              <button type="button" class="source-brief" onClick={() => onOpen(row.line)}>
                {t(first.title)}
                {row.notes.length > 1 && ` ${t("and {count} more", { count: row.notes.length - 1 })}`}
              </button>
            )}
            {first !== undefined && open === row.line && <Notes notes={row.notes} />}
          </div>
        );
      })}
    </div>
  );
}

const SIGNS: Readonly<Record<Kind, string>> = {
  break: "⊘",
  limit: "■",
  skipped: "□",
  recompile: "↻",
  guard: "◆",
  follows: "↳",
  finding: "!",
};

function Sign({ kind }: { readonly kind: Kind }): JSX.Element {
  return (
    <span class="sign" aria-hidden="true">
      {SIGNS[kind]}
    </span>
  );
}

/** The line of the first note of the gravest kind. */
function gravest(file: NotedFile | undefined): number {
  const notes = file?.notes ?? [];
  const [kind] = countsOf(notes)[0] ?? [];
  return notes.find((one) => one.kind === kind)?.line ?? -1;
}

function lineFrom(text: string | undefined, content: BreaksContent): { readonly file: number; readonly line: number } | null {
  const match = /^(\d+):(-1|\d+)$/.exec(text ?? "");
  const [file, line] = [Number(match?.[1] ?? -1), Number(match?.[2])]; // -1: the reader closed the one that was open
  const pieces = content.files[file]?.pieces ?? [];
  const known = line < 0 || pieces.some(({ first_line: first, lines }) => line >= first && line < first + lines.length);
  return pieces.length > 0 && known ? { file, line } : null;
}

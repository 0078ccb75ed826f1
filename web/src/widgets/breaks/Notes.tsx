/** What happens at a line, why, and what to write instead. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import type { Advice, Kind, LineNote } from "./content";

/** What the kinds of notes are called. */
export const TITLES: Readonly<Record<Kind, string>> = {
  break: "breaks",
  limit: "recompile limit",
  skipped: "given up",
  recompile: "compiled again",
  guard: "failing guards",
  follows: "follow from a break",
  finding: "findings",
};

export function Notes({ notes }: { readonly notes: readonly LineNote[] }): JSX.Element {
  return (
    <div class="source-notes">
      {notes.map((note, place) => (
        <article key={place} class={`note-${note.kind}`}>
          <h4>
            {note.kind === "finding" && (
              <>
                <a href="#/findings">{note.code}</a>{" "}
              </>
            )}
            {t(note.title)}
          </h4>
          {note.remark !== "" && <p class="note">{t(note.remark)}</p>}
          {note.explanation !== "" && <p>{t(note.explanation)}</p>}
          {note.kind === "recompile" && (
            <p>
              <a href="#/compile?see=recompiles">{t("Which guards failed, compilation by compilation")}</a>
            </p>
          )}
          {note.advice.map((advice) => (
            <Rewrite key={advice.title} advice={advice} />
          ))}
          {note.stack.length > 0 && (
            <details>
              <summary>{t("Called from")}</summary>
              <ol class="stack">
                {note.stack.map((place, depth) => (
                  <li key={depth}>
                    <code>{place}</code>
                  </li>
                ))}
              </ol>
            </details>
          )}
        </article>
      ))}
    </div>
  );
}

function Rewrite({ advice }: { readonly advice: Advice }): JSX.Element {
  const { title, why, before, after, setting, caution } = advice;
  return (
    <div class="rewrite">
      <p>
        <b>
          {t(`${title.slice(0, 1).toUpperCase()}${title.slice(1)}.`)}
        </b>{" "}
        {t(why)} {caution !== "" && <em>({caution})</em>}
      </p>
      {before !== "" && after !== "" && (
        <div class="columns">
          <pre class="before">{before}</pre>
          <pre class="after">{after}</pre>
        </div>
      )}
      {setting !== "" && <pre class="after">{setting}</pre>}
    </div>
  );
}

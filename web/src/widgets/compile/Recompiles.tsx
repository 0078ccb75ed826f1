/** Which guards made torch compile a frame again: a small matrix per frame. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatSeconds } from "../../data/quantity";
import { t } from "../../i18n/language";
import { Figure } from "../Figure";
import { cellOf, type RecompiledFrame } from "./content";

const SIGNS = { first: "●", also: "○", held: "" } as const;

export function Recompiles({ frames }: { readonly frames: readonly RecompiledFrame[] }): JSX.Element {
  return (
    <div class="recompiles">
      <Figure
        title="Why frames were compiled again"
        how="A column is a compilation of the frame, a row a guard whose values are left out. ● is the guard that failed first against some earlier compilation, ○ one that failed as well. Press a cell for torch's words."
        change="A row that is full is one thing that changes every time: a size to mark dynamic, a number to make a tensor, a container that grows. A diagonal of rows is many things that change once."
      >
        {frames.map((frame) => (
          <Frame key={frame.frame} frame={frame} />
        ))}
      </Figure>
    </div>
  );
}

function Frame({ frame }: { readonly frame: RecompiledFrame }): JSX.Element {
  const [said, setSaid] = useState("");
  const again = frame.columns.length - (frame.refused >= 0 ? 1 : 0);
  const spent = frame.compile_s.reduce<number>((sum, one) => sum + (one ?? 0), 0);
  return (
    <section class="recompiled">
      <h4>
        <code>{frame.place}</code> {frame.function}{" "}
        <span>
          {again === 1
            ? t("compiled again once, in {time}", { time: formatSeconds(spent) })
            : t("compiled again {count} times, {time} in all", { count: again, time: formatSeconds(spent) })}
          {frame.refused >= 0 && ` · ${t("then the recompile limit: it runs eagerly, in silence")}`}
        </span>
      </h4>
      {frame.seen.map((one) => (
        <p key={`${one.name}${one.kind}`} class="seen">
          {t("{name} was", { name: one.name })}{" "}
          {one.values.map((value) => (
            <code key={value}>{value}</code>
          ))}
          {one.became_dynamic && <span> {t("open from then on: any value fits")}</span>}
        </p>
      ))}
      <div class="scroll" role="region" aria-label={t("Guards that failed")} tabIndex={0}>
        <table class="guard-matrix">
          <thead>
            <tr>
              <th scope="col">{t("guard")}</th>
              {frame.columns.map((id, column) => (
                <th scope="col" key={id} title={frame.compile_s[column] == null ? "" : formatSeconds(frame.compile_s[column])}>
                  {id}
                  {column === frame.refused && " ■"}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {frame.guards.map((row) => (
              <tr key={row.guard}>
                <th scope="row">
                  <code>{frame.columns.length === 1 ? row.said[0] : row.guard}</code> <span>{row.kind === "unknown" ? "" : row.kind}</span>
                </th>
                {frame.columns.map((id, column) => {
                  const cell = cellOf(row, column);
                  return (
                    <td key={id} class={cell.state}>
                      {cell.state !== "held" && (
                        <button type="button" title={cell.said} aria-label={`${id}: ${cell.said}`} onClick={() => setSaid(`${id}: ${cell.said}`)}>
                          {SIGNS[cell.state]}
                        </button>
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {said !== "" && (
        <p class="note" role="status">
          <code>{said}</code>
        </p>
      )}
      {frame.refused >= 0 && <p class="note">{t("■ was refused: the recompile limit was reached.")}</p>}
      {frame.left_out > 0 && <p class="note">{t("{count} more are in the document.", { count: frame.left_out })}</p>}
    </section>
  );
}

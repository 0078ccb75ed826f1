/** Wholes and their parts as bars on one scale, every figure also in words. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";

/** One bar. */
export interface Whole {
  readonly label: string;
  readonly note: string;
  readonly total: number;
  readonly pieces: readonly { readonly name: string; readonly slot: number; readonly value: number }[];
  /** A sign and a word that set this bar apart. */
  readonly mark?: string;
}

interface Props {
  readonly wholes: readonly Whole[];
  readonly format: (value: number) => string;
}

export function Bars({ wholes, format }: Props): JSX.Element {
  const most = Math.max(1e-300, ...wholes.map(({ total }) => total));
  return (
    <ul class="bars">
      {wholes.map(({ label, note, total, pieces, mark }, i) => (
        <li key={i} class={mark === undefined ? "" : "marked"}>
          <p class="head">
            <b>{t(label)}</b> <span>{format(total)}</span>
            {mark !== undefined && <em>{mark}</em>}
            {note !== "" && <small>{t(note)}</small>}
          </p>
          <div class="length" style={{ width: `${Math.max(0.3, (total / most) * 100)}%` }}>
            {pieces.map(({ name, slot, value }) => <i key={name} class={`slot-${slot}`} style={{ flex: `0 1 ${(value / Math.max(total, 1e-300)) * 100}%` }} title={`${t(name)} ${format(value)}`} />)}
          </div>
          {pieces.length > 1 && (
            <p class="pieces">
              {pieces.map(({ name, slot, value }) => <span key={name}><i class={`swatch slot-${slot}`} />{t(name)} {format(value)}</span>)}
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}

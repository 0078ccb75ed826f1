/** The categories: what each is at the peak, what was predicted, and what it is at an instant that the reader keeps. */
import type { JSX } from "preact";
import { formatBytes } from "../../data/quantity";
import { t } from "../../i18n/language";
import { type Layer, type MemoryPart, shareSaid } from "./model";

interface Props {
  readonly part: MemoryPart;
  readonly layers?: readonly Layer[];
  readonly hidden?: ReadonlySet<string>;
  readonly onToggle?: (name: string) => void;
  /** An instant beside the peak. */
  readonly instant?: { readonly point: number; readonly said: string } | null;
  readonly onLeave?: () => void;
}

export function Ledger({ part, layers = [], hidden, onToggle, instant = null, onLeave }: Props): JSX.Element {
  const predicted = part.ledger.some(({ predicted_bytes }) => predicted_bytes !== null);
  const values = new Map(layers.map(({ name, values: column }) => [name, column]));
  const told = new Map(part.ledger.map((category) => [category.name, category]));
  const names = [...part.ledger.map(({ name }) => name), ...layers.map(({ name }) => name).filter((name) => !told.has(name))];
  return (
    <div class="scroll" role="region" aria-label={t("Categories")} tabIndex={0}>
      <table class="ledger">
        <thead>
          <tr>
            <th scope="col">{t("category")}</th>
            {instant !== null && (
              <th scope="col">
                {t("at")} {instant.said} <button type="button" class="quiet" aria-label={t("Leave this instant")} onClick={onLeave}>✕</button>
              </th>
            )}
            <th scope="col">{t("at the peak")}</th>
            <th scope="col">{t("share")}</th>
            {predicted && <th scope="col">{t("predicted")}</th>}
            <th scope="col" class="words">{t("what it is")}</th>
          </tr>
        </thead>
        <tbody>
          {names.map((name) => {
            const category = told.get(name);
            return (
              <tr key={name}>
                <th scope="row"><Name name={name} slot={category?.slot ?? 5} drawn={values.has(name)} hidden={hidden} onToggle={onToggle} /></th>
                {instant !== null && <td>{values.has(name) ? formatBytes(values.get(name)?.[instant.point] ?? 0) : "–"}</td>}
                <td>{category === undefined ? "–" : formatBytes(category.peak_bytes)}</td>
                <td>{category === undefined ? "–" : shareSaid(category.share)}</td>
                {predicted && <td>{category?.predicted_bytes == null ? "–" : formatBytes(category.predicted_bytes)}</td>}
                <td class="words">{category === undefined ? "" : t(category.meaning)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

interface NameProps {
  readonly name: string;
  readonly slot: number;
  /** Whether there is a layer to show and hide. */
  readonly drawn: boolean;
  readonly hidden: ReadonlySet<string> | undefined;
  readonly onToggle: ((name: string) => void) | undefined;
}

function Name({ name, slot, drawn, hidden, onToggle }: NameProps): JSX.Element {
  const swatch = <i class={`swatch slot-${slot}`} />;
  if (!drawn || onToggle === undefined) return <span>{swatch}{t(name)}</span>;
  return (
    <label>
      <input type="checkbox" checked={!hidden?.has(name)} onChange={() => onToggle(name)} />
      {swatch}{t(name)}
    </label>
  );
}

/** What was selected in a table, in full, and where else it can be seen. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import { formatRoute } from "../../shell/router";

/** A way to another page. */
export interface Way {
  /** English. */
  readonly label: string;
  readonly page: string;
  readonly parameters: Readonly<Record<string, string>>;
}

interface Props {
  /** What was selected, in full. */
  readonly name: string;
  /** More about it. */
  readonly facts?: readonly string[];
  readonly ways: readonly Way[];
  readonly onClose: () => void;
}

export function Chosen({ name, facts = [], ways, onClose }: Props): JSX.Element {
  return (
    <div class="chosen-row" role="status">
      <div>
        <code>{name}</code>
        {facts.map((fact) => <p key={fact} class="note">{fact}</p>)}
      </div>
      <span class="tools">
        {ways.map(({ label, page, parameters }) => (
          <a key={page} class="chosen-way" href={formatRoute({ page, parameters })}>{t(label)}</a>
        ))}
        <button type="button" onClick={onClose} aria-label={t("Close")}>×</button>
      </span>
    </div>
  );
}

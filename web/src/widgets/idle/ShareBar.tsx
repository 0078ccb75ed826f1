/** Parts of a whole in one bar, and below it each with its figures; a press on one filters by it. */
import type { JSX } from "preact";
import { formatCount, formatNs, formatShare } from "../../data/quantity";
import { t } from "../../i18n/language";

/** One part. */
export interface Part {
  readonly name: string;
  readonly total_ns: number;
  /** Of the whole, 0 to 1. */
  readonly share: number;
  /** Place in the palette. */
  readonly slot: number;
  readonly num_gaps?: number;
  readonly meaning?: string;
}

interface Props {
  readonly parts: readonly Part[];
  readonly label: string;
  readonly chosen: string;
  readonly onChoose: (name: string) => void;
}

const LEAST_FOR_LABEL = 0.09;

export function ShareBar({ parts, label, chosen, onChoose }: Props): JSX.Element {
  return (
    <div class="idle-parts">
      <div class="idle-bar" role="img" aria-label={`${label}: ${parts.map(({ name, share }) => `${t(name)} ${formatShare(share)}`).join(", ")}`}>
        {parts.map(({ name, share, slot }) => (
          <span key={name} title={`${t(name)}: ${formatShare(share)}`} class={chosen !== "" && chosen !== name ? "faded" : ""}
            style={{ width: `${100 * share}%`, background: `var(--phase-${slot})` }}>
            {share >= LEAST_FOR_LABEL ? formatShare(share) : ""}
          </span>
        ))}
      </div>
      <ul>
        {parts.map((part) => (
          <li key={part.name}>
            <button type="button" aria-pressed={chosen === part.name} onClick={() => onChoose(chosen === part.name ? "" : part.name)}
              title={t("List only these gaps")}>
              <span class="swatch-of" style={{ background: `var(--phase-${part.slot})` }} />
              {t(part.name)}
            </button>
            <strong>{formatShare(part.share)}</strong>
            <span class="said">
              {formatNs(part.total_ns)}
              {part.num_gaps === undefined ? "" : ` · ${part.num_gaps === 1 ? t("1 gap") : t("{n} gaps", { n: formatCount(part.num_gaps) })}`}
            </span>
            {part.meaning !== undefined && part.meaning !== "" && <p class="note">{t(part.meaning)}</p>}
          </li>
        ))}
      </ul>
    </div>
  );
}

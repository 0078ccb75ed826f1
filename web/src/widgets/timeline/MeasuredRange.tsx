/** What the measured range holds, by kind. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Range } from "../../canvas/viewport";
import { formatCount, formatNs, formatShare } from "../../data/quantity";
import { t } from "../../i18n/language";
import { KindName } from "./KindName";
import type { Scene } from "./scene";
import type { Looking } from "./state";
import { sumsByKind } from "./sums";
import { momentOf } from "./ticks";

interface Props {
  readonly scene: Scene;
  readonly range: Range;
  readonly looking: Looking;
}

export function MeasuredRange({ scene, range, looking }: Props): JSX.Element {
  const sums = useMemo(() => sumsByKind(scene, range), [scene, range]);
  const extent = Math.max(range.end - range.start, 1);
  return (
    <section class="timeline-details" aria-label={t("Measured range")}>
      <header>
        <strong>
          {t("{extent} from {start}", { extent: formatNs(range.end - range.start), start: momentOf(range.start) })}
        </strong>
        <span class="tools">
          <button type="button" onClick={() => looking.setRange(range)}>
            {t("Zoom to it")}
          </button>
          <button type="button" aria-label={t("Close")} title="Escape" onClick={() => looking.measure(null)}>
            ×
          </button>
        </span>
      </header>
      <table>
        <thead>
          <tr>
            <th>{t("Kind")}</th>
            <th>{t("Slices")}</th>
            <th title={t("Track by track; what nests in its own kind counts once")}>{t("Time")}</th>
            <th>{t("Of the range")}</th>
          </tr>
        </thead>
        <tbody>
          {sums.map(({ kind, events, busy }) => (
            <tr key={kind}>
              <th scope="row">
                <KindName kind={kind} />
              </th>
              <td>{formatCount(events)}</td>
              <td>{formatNs(busy)}</td>
              <td>{formatShare(busy / extent)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="note">{t("Time is added up over tracks, so that several busy ones make more than 100 %.")}</p>
    </section>
  );
}

/** What the colours of boxes mean. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import type { Overlay, Painted } from "./overlay";

interface Props {
  readonly painted: Painted;
  readonly overlay: Overlay;
}

export function Legend({ painted, overlay }: Props): JSX.Element {
  return (
    <ul class="graph-legend">
      {painted.keys.map(({ name, slot, count }) => (
        <li key={name}>
          <span class="swatch" style={{ background: `var(--${slot})` }} />
          {overlay === "kind" || overlay === "marks" ? t(name) : name} <span>{count}</span>
        </li>
      ))}
      {painted.keys.length === 0 && <li>{t("nothing is marked in this graph")}</li>}
    </ul>
  );
}

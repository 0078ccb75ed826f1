/** The kinds that are drawn; each can be brought out of the others. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import { KindName } from "./KindName";
import type { Scene } from "./scene";

interface Props {
  readonly scene: Scene;
  readonly chosen: string | null;
  readonly onChoose: (kind: string | null) => void;
}

export function Legend({ scene, chosen, onChoose }: Props): JSX.Element {
  const used = new Set(scene.content.labels.kind);
  const kinds = scene.content.kinds.filter((_, i) => used.has(i));
  return (
    <div class="kinds" role="group" aria-label={t("Kinds; press one to bring it out")}>
      {kinds.map((kind) => (
        <button key={kind} type="button" aria-pressed={kind === chosen} onClick={() => onChoose(kind === chosen ? null : kind)}>
          <KindName kind={kind} />
        </button>
      ))}
    </div>
  );
}

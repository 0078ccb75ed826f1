/** Search, zoom and exports. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { keyed } from "../../canvas/viewport";
import { formatCount } from "../../data/quantity";
import { t } from "../../i18n/language";
import { standFor, unsearched } from "./find";
import type { Scene } from "./scene";
import type { Saved } from "./Stage";
import type { Looking } from "./state";

interface Props {
  readonly scene: Scene;
  readonly looking: Looking;
  readonly search: { readonly current: HTMLInputElement | null };
  readonly choice: JSX.Element | null;
  readonly onSave: (what: Saved) => void;
}

export function Tools({ scene, looking, search, choice, onSave }: Props): JSX.Element {
  const { matches, selected, find } = looking;
  const matching = useMemo(() => standFor(scene, matches), [scene, matches]);
  const missed = useMemo(() => unsearched(scene), [scene]);
  const number = matches.indexOf(selected) + 1;
  const press = (key: string): void => {
    const range = keyed(scene.axis, looking.range, key);
    if (range !== null) looking.setRange(range);
  };
  return (
    <>
      {choice}
      <input
        type="search"
        ref={search}
        value={find}
        placeholder={t("Search, or press /")}
        aria-label={t("Search the timeline")}
        onInput={(event) => looking.setFind(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") looking.step(event.shiftKey);
          if (event.key !== "Escape") return;
          event.preventDefault();
          looking.setFind("");
          event.currentTarget.blur();
        }}
      />
      {find.trim() !== "" && (
        <>
          <span role="status">
            {number > 0
              ? t("{number} of {count}", { number: formatCount(number), count: formatCount(matches.length) })
              : t(matching === 1 ? "{count} match" : "{count} matches", { count: formatCount(matching) })}
          </span>
          {missed > 0 && <span>{t("{count} merged slices are not searched", { count: formatCount(missed) })}</span>}
          <button type="button" disabled={matches.length === 0} aria-label={t("Previous match")} onClick={() => looking.step(true)}>
            ‹
          </button>
          <button type="button" disabled={matches.length === 0} aria-label={t("Next match")} onClick={() => looking.step(false)}>
            ›
          </button>
        </>
      )}
      <button type="button" aria-label={t("Zoom in")} title="W" onClick={() => press("w")}>
        +
      </button>
      <button type="button" aria-label={t("Zoom out")} title="S" onClick={() => press("s")}>
        −
      </button>
      <button type="button" title="0" onClick={() => press("0")}>
        {t("Whole")}
      </button>
      <button type="button" onClick={() => onSave("picture")}>
        PNG
      </button>
      <button
        type="button"
        title={t("The measured range, else what is in view, for ui.perfetto.dev and pyrometer trace")}
        onClick={() => onSave("perfetto")}
      >
        {t("Perfetto JSON")}
      </button>
    </>
  );
}

/** Names of the tracks in view, over the canvas: each folds its track. The topmost stays while its rows are seen. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import { HEADER_PX, RULER_PX, tracksWithin } from "./layout";
import type { Scene } from "./scene";
import type { Looking } from "./state";

interface Props {
  readonly scene: Scene;
  readonly looking: Looking;
  readonly top: number;
  readonly height: number;
}

export function TrackNames({ scene, looking, top, height }: Props): JSX.Element {
  const shown = tracksWithin(looking.layout, top, top + height);
  return (
    <div class="track-names">
      {shown.map(({ track, top: own, bottom, folded }) => {
        const y = Math.min(Math.max(own - top, 0), bottom - top - HEADER_PX) + RULER_PX;
        const { name = "", process = "", num_rows: rows = 1 } = scene.content.tracks[track] ?? {};
        if (y > RULER_PX + height - HEADER_PX) return null;
        return (
          <div key={track} class={own < top ? "pinned" : ""} style={{ top: `${y}px` }}>
            <button
              type="button"
              aria-expanded={!folded}
              title={t(rows === 1 ? "{process}, {rows} row" : "{process}, {rows} rows", { process, rows })}
              onClick={() => looking.fold(track)}
            >
              <span aria-hidden="true">{folded ? "▸" : "▾"}</span> <b>{name}</b> <small>{process}</small>
            </button>
          </div>
        );
      })}
    </div>
  );
}

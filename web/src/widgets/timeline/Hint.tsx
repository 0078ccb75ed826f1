/** What the slice under the pointer is. */
import type { JSX } from "preact";
import type { Spot } from "../../canvas/Surface";
import { Tooltip } from "../../canvas/Tooltip";
import { formatCount, formatNs } from "../../data/quantity";
import { t } from "../../i18n/language";
import { KindName } from "./KindName";
import { busyOf, eventsOf, kindOf, type Scene, selfOf, sourceOf, titleOf } from "./scene";
import { momentOf } from "./ticks";

interface Props {
  readonly scene: Scene;
  readonly slice: number;
  readonly spot: Spot;
  readonly width: number;
  readonly height: number;
}

const LONGEST = 220;

export function Hint({ scene, slice, spot, width, height }: Props): JSX.Element {
  const name = titleOf(scene, slice);
  const events = eventsOf(scene, slice);
  const self = selfOf(scene, slice);
  const source = sourceOf(scene, slice);
  const dur = (scene.end[slice] ?? 0) - (scene.start[slice] ?? 0);
  return (
    <Tooltip x={spot.x} y={spot.y} width={width} height={height}>
      <strong><bdi>{name.length > LONGEST ? `${name.slice(0, LONGEST)}…` : name}</bdi></strong>
      <div>
        <KindName kind={kindOf(scene, slice)} />
      </div>
      <div>
        <b>{formatNs(dur)}</b>
        {self !== null && self !== dur && t(", of which {self} its own", { self: formatNs(self) })}
      </div>
      <div>{t("begins at {start}", { start: momentOf(scene.start[slice] ?? 0) })}</div>
      {events > 1 && (
        <div>{t("{count} short slices, {busy} in all", { count: formatCount(events), busy: formatNs(busyOf(scene, slice)) })}</div>
      )}
      {source >= 0 && (
        <div>
          {t("launched by {name}, {delay} before", {
            name: `\u2068${titleOf(scene, source)}\u2069`, // isolated: its characters may turn the direction
            delay: formatNs((scene.start[slice] ?? 0) - (scene.start[source] ?? 0)),
          })}
        </div>
      )}
    </Tooltip>
  );
}

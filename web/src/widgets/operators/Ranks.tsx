/** One widget for all ranks of a document, with a choice among them. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../../i18n/language";
import { leaveOut } from "../../shell/notice";
import { noteSome } from "../../shell/router";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";

interface Props<T> extends WidgetProps {
  /** Draws the content of one rank's block. */
  readonly children: (content: T, rank: string, chooser: JSX.Element | null) => ComponentChildren;
}

/** Stands in the place of the first block of an area; the places of the other ranks stay empty. */
export function Ranks<T>({ blocks, place, route, children }: Props<T>): JSX.Element | null {
  const name = place["block"] ?? "";
  const area = `${name.split("/", 1)[0] ?? ""}/`;
  const all = blocks.names(area);
  const asked = route.parameters["rank"];
  const [rank, setRank] = useState(asked ?? null);
  useEffect(() => {
    if (asked === undefined) return;
    setRank(asked);
    if (!all.includes(area + asked)) leaveOut([`rank=${asked}`]);
  }, [route]);
  if (name !== all[0]) return null;
  const shown = rank !== null && all.includes(area + rank) ? rank : name.slice(area.length);
  const chooser =
    all.length < 2 ? null : (
      <label>
        {t("Rank")}{" "}
        <select value={shown} onChange={(event) => {
          setRank(event.currentTarget.value);
          noteSome(place["page"] ?? "", { rank: event.currentTarget.value });
        }}>
          {all.map((one) => <option key={one} value={one.slice(area.length)}>{one.slice(area.length)}</option>)}
        </select>
      </label>
    );
  return (
    <Loaded<T> key={shown} blocks={blocks} name={area + shown}>
      {(content) => children(content, shown, chooser)}
    </Loaded>
  );
}

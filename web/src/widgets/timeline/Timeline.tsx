/** Slices of threads and streams over time, of one rank at a time; of a comparison, of the side before or after. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { t } from "../../i18n/language";
import { note, type Route } from "../../shell/router";
import { Figure } from "../Figure";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import { type Scene, sceneOf, type TraceContent } from "./scene";
import { Stage } from "./Stage";
import { PAGE } from "./state";

const AREA = "trace/";
/** Another rank is seen from its start: a range of one says nothing about another. */
const NOWHERE: Route = { page: "", parameters: {} };

export function Timeline({ blocks, place, route }: WidgetProps): JSX.Element | null {
  const ranks = useMemo(() => blocks.names(AREA).map((name) => name.slice(AREA.length)), [blocks]);
  const [chosen, setChosen] = useState<{ readonly route: Route; readonly rank: string } | null>(null);
  // One place serves all ranks: the page has one per block, and the others stay empty.
  if (place["block"] !== AREA + (ranks[0] ?? "")) return null;
  // A link that is followed later counts more than what was chosen before.
  const isChosen = chosen !== null && chosen.route === route;
  const wanted = isChosen ? chosen.rank : (route.parameters["rank"] ?? "");
  const rank = ranks.includes(wanted) ? wanted : (ranks[0] ?? "");
  const choose = (one: string): void => {
    setChosen({ route, rank: one });
    note(PAGE, one === ranks[0] ? {} : { rank: one });
  };
  const choice =
    ranks.length < 2 ? null : (
      <select aria-label={t(ranks.every(isNumber) ? "Rank" : "Recording")} value={rank} onChange={(event) => choose(event.currentTarget.value)}>
        {ranks.map((one) => (
          <option key={one} value={one}>
            {isNumber(one) ? t("rank {rank}", { rank: one }) : t(one)}
          </option>
        ))}
      </select>
    );
  return (
    <Loaded<TraceContent> key={rank} blocks={blocks} name={AREA + rank}>
      {(content) => <Decoded content={content} route={isChosen ? NOWHERE : route} choice={choice} rank={rank === ranks[0] ? null : rank} file={`timeline-${isNumber(rank) ? `rank-${rank}` : rank}`} />}
    </Loaded>
  );
}

function isNumber(rank: string): boolean {
  return /^\d+$/.test(rank);
}

interface DecodedProps {
  readonly content: TraceContent;
  readonly route: WidgetProps["route"];
  readonly choice: JSX.Element | null;
  /** Null for the first, which the address need not name. */
  readonly rank: string | null;
  readonly file: string;
}

function Decoded({ content, route, choice, rank, file }: DecodedProps): JSX.Element {
  const scene: Scene = useMemo(() => sceneOf(content), [content]);
  if (scene.count === 0) {
    return (
      <Figure title="Streams and threads over time" how="There is nothing to draw: the trace holds no event that lasts." tools={choice}>
        {null}
      </Figure>
    );
  }
  return <Stage scene={scene} route={route} choice={choice} rank={rank} file={file} />;
}

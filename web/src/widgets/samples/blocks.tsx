/** Medians of consecutive blocks with their intervals, on an axis that shows only their range. */
import { formatCount, formatSeconds } from "../../data/quantity";
import { t } from "../../i18n/language";
import { BELOW, YAxis, leftOf } from "../charts/Axes";
import type { Drawing } from "../charts/Chart";
import type { Spot } from "../charts/marks";
import { axisAround, formatBetween, scaleOf, seconds } from "../charts/scale";
import type { Course, MeasurementView, TimeBlock } from "./view";

const TOP = 10;
const HEIGHT = 170;
const RIGHT = 14;

export function drawBlocks(course: Course, view: MeasurementView, width: number): Drawing {
  const bottom = TOP + HEIGHT;
  const up = scaleOf(axisAround([...typicalEnds(course.blocks), view.low_s, view.high_s]), bottom, TOP);
  const left = leftOf(up, seconds);
  const step = (width - RIGHT - left) / course.blocks.length;
  const spots = course.blocks.map(({ first, end, median_s, low_s, high_s }, i): Spot => {
    const lines = [t("Block {number}", { number: i + 1 }), t("median {median}", { median: formatSeconds(median_s) })];
    if (low_s !== null && high_s !== null) {
      lines.push(t("95 % interval {interval}", { interval: formatBetween(low_s, high_s) }));
    }
    lines.push(t("samples {first} to {last}", { first: formatCount(first + 1), last: formatCount(end) }));
    return { x: left + (i + 0.5) * step, y: up(median_s), lines };
  });
  const body = (
    <g>
      <YAxis scale={up} unit={seconds} left={left} right={width - RIGHT} />
      <rect class="interval" x={left} width={width - RIGHT - left} y={up(view.high_s)} height={Math.max(up(view.low_s) - up(view.high_s), 1)} />
      <line class="marker median" x1={left} x2={width - RIGHT} y1={up(view.median_s)} y2={up(view.median_s)} />
      <line class="axis" x1={left} x2={width - RIGHT} y1={bottom} y2={bottom} />
      {course.blocks.map(({ low_s, high_s }, i) => {
        const x = spots[i]?.x ?? 0;
        return (
          <g key={i}>
            {low_s !== null && high_s !== null && <line class="series" x1={x} x2={x} y1={up(low_s)} y2={up(high_s)} />}
            <circle class="run" cx={x} cy={spots[i]?.y} r={4} />
          </g>
        );
      })}
      <text class="tick" x={left} y={bottom + 16}>
        {t("{count} blocks in time order", { count: course.blocks.length })}
      </text>
    </g>
  );
  return { height: bottom + BELOW, body, spots };
}

/** All medians, and the ends of their intervals but for the outermost tenth: one wide interval must not flatten the others. */
function typicalEnds(blocks: readonly TimeBlock[]): number[] {
  const spread = (ends: readonly (number | null)[], away: number): number[] => {
    const known = ends.filter((end) => end !== null).sort((a, b) => (a - b) * away);
    return known.slice(0, known.length - Math.floor(known.length / 10));
  };
  return [...blocks.map(({ median_s }) => median_s), ...spread(blocks.map(({ low_s }) => low_s), -1), ...spread(blocks.map(({ high_s }) => high_s), 1)];
}

/** The ratios of paired blocks in the order they were taken. */
import { significant } from "../../data/quantity";
import { t } from "../../i18n/language";
import { BELOW, YAxis, leftOf } from "../charts/Axes";
import type { Drawing } from "../charts/Chart";
import { dots, polyline, triangle, type Spot } from "../charts/marks";
import { plain, scaleOf } from "../charts/scale";
import type { Comparison } from "./view";

const TOP = 12;
const HEIGHT = 180;
const RIGHT = 14;

export function drawBlocks(one: Comparison, width: number): Drawing {
  const bottom = TOP + HEIGHT;
  const { low, high } = one.axis_of_blocks;
  const up = scaleOf(one.axis_of_blocks, bottom, TOP);
  const left = leftOf(up, plain);
  const step = (width - RIGHT - left) / one.blocks.length;
  const spots = one.blocks.map((ratio, i): Spot => ({
    x: left + (i + 0.5) * step,
    y: up(ratio),
    lines: [
      t(one.noun === "process" ? "Process {number} of {count}" : "Block {number} of {count}", { number: i + 1, count: one.blocks.length }),
      t("ratio {ratio}", { ratio: significant(ratio, 4) }),
      t("median up to here {ratio}", { ratio: significant(one.running[i] ?? 1, 4) }),
    ],
  }));
  const beyond = one.blocks.map((ratio) => ratio < low || ratio > high);
  const [top, foot] = [up(1 + one.margin), up(1 - one.margin)];
  const body = (
    <g>
      <YAxis scale={up} unit={plain} left={left} right={width - RIGHT} />
      <rect class="margin" x={left} width={width - RIGHT - left} y={top} height={Math.max(foot - top, 1)} />
      <line class="one" x1={left} x2={width - RIGHT} y1={up(1)} y2={up(1)} />
      <line class="axis" x1={left} x2={width - RIGHT} y1={bottom} y2={bottom} />
      <path class="series strong" d={polyline(one.running.map((ratio, i) => [spots[i]?.x ?? 0, up(ratio)]))} />
      <path class="dots" stroke-width={one.blocks.length > 100 ? 4 : 6} d={dots(spots.filter((_, i) => !beyond[i]).map(({ x, y }) => [x, y]))} />
      <path class="outlier" d={spots.map(({ x, y }, i) => (beyond[i] ? triangle(x, y, 4.5, (one.blocks[i] ?? 1) < low) : "")).join("")} />
      <text class="tick" x={left} y={bottom + 16}>
        {t(one.noun === "process" ? "{count} fresh processes in time order" : "{count} blocks in time order", { count: one.blocks.length })}
      </text>
    </g>
  );
  return { height: bottom + BELOW, body, spots };
}

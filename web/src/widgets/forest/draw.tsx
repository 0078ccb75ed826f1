/** A row for each ratio: its name and words, its interval below them. */
import type { JSX } from "preact";
import { formatSeconds, formatShare, significant } from "../../data/quantity";
import { t } from "../../i18n/language";
import { BELOW, XAxis } from "../charts/Axes";
import type { Drawing } from "../charts/Chart";
import { diamond, dots, shortened, type Spot } from "../charts/marks";
import { plain, scaleOf, type Scale } from "../charts/scale";
import { signOf, type Comparison, type RatioRow, type VerdictView } from "./view";

const TOP = 24;
const ROW = 44;
const HEAD = 22;
const STRIP = 62;
const SIDE = 8;

interface Line {
  readonly one: Comparison;
  readonly row: RatioRow;
  readonly top: number;
}

export function drawForest(view: VerdictView, chosen: number | null, width: number): Drawing {
  const many = view.comparisons.length > 1;
  const only = many ? undefined : view.comparisons[0];
  const across = scaleOf(only?.axis_of_blocks ?? view.axis, SIDE, width - SIDE);
  const lines: Line[] = [];
  const heads: JSX.Element[] = [];
  let y = TOP;
  view.comparisons.forEach((one, i) => {
    const start = y;
    if (many) {
      heads.push(<Head key={`head ${i}`} one={one} top={y} width={width} chosen={i === chosen} />);
      y += HEAD;
    }
    for (const row of one.rows) {
      lines.push({ one, row, top: many ? y - 14 : y });
      y += many ? ROW - 14 : ROW;
    }
    if (many && i > 0) heads.push(<line key={`rule ${i}`} class="grid" x1={0} x2={width} y1={start} y2={start} />);
  });
  const strip = y;
  if (only !== undefined && only.blocks.length > 0) y += STRIP;
  const margin = Math.max(...view.comparisons.map((one) => one.margin));
  const body = (
    <g>
      <rect class="margin" x={across(1 - margin)} width={across(1 + margin) - across(1 - margin)} y={TOP} height={y - TOP} />
      <XAxis scale={across} unit={plain} top={TOP} bottom={y} />
      <line class="one" x1={across(1)} x2={across(1)} y1={TOP - 4} y2={y} />
      <Directions across={across} width={width} />
      {heads}
      {lines.map((line, i) => (
        <Row key={i} line={line} across={across} many={many} />
      ))}
      {only !== undefined && only.blocks.length > 0 && <Strip one={only} across={across} top={strip} />}
    </g>
  );
  const spots = lines.map(({ one, row, top }): Spot => ({ x: across(row.ratio), y: top + 30, lines: said(one, row) }));
  return { height: y + BELOW, body, spots };
}

function Directions({ across, width }: { readonly across: Scale; readonly width: number }): JSX.Element {
  const one = across(1);
  return (
    <>
      {one > 80 && (
        <text class="tick" x={one - 9} y={TOP - 10} text-anchor="end">
          {t("← faster")}
        </text>
      )}
      {width - one > 80 && (
        <text class="tick" x={one + 9} y={TOP - 10}>
          {t("slower →")}
        </text>
      )}
    </>
  );
}

function Head({ one, top, width, chosen }: { readonly one: Comparison; readonly top: number; readonly width: number; readonly chosen: boolean }): JSX.Element {
  const height = HEAD + one.rows.length * (ROW - 14);
  return (
    <>
      {chosen && <rect class="row-chosen" x={0} width={width} y={top} height={height} />}
      <text class="label" x={0} y={top + 15}>
        <tspan class={`word ${one.outcome}`}>{`${signOf(one.outcome)} ${one.sentence}`}</tspan>
        {`  ${shortened(one.candidate, Math.max(16, Math.round(width / 14)))}`}
      </text>
    </>
  );
}

interface RowProps {
  readonly line: Line;
  readonly across: Scale;
  readonly many: boolean;
}

function Row({ line: { one, row, top }, across, many }: RowProps): JSX.Element {
  const kind = row === one.rows[0] ? row.reads : "tail";
  const y = top + 30;
  const bounded = row.low !== null && row.high !== null;
  return (
    <g>
      {!many && (
        <text class="label" x={0} y={top + 14}>
          <tspan class={`word ${row.reads}`}>{`${signOf(row.reads)} ${t(row.name)}  `.trimStart()}</tspan>
          {row.words}
        </text>
      )}
      {bounded && <path class={`whisker ${kind}`} d={whisker(across(row.low ?? 1), across(row.high ?? 1), y)} />}
      <path class={`estimate ${kind}`} d={diamond(across(row.ratio), y, row === one.rows[0] ? 7 : 5)} />
    </g>
  );
}

/** A dot for each block; a fixed pattern of heights keeps neighbours apart and the picture reproducible. */
function Strip({ one, across, top }: { readonly one: Comparison; readonly across: Scale; readonly top: number }): JSX.Element {
  return (
    <>
      <text class="label" x={0} y={top + 16}>
        {t(one.noun === "process" ? "fresh processes: {count}" : "blocks: {count}", { count: one.blocks.length })}
      </text>
      <path class="dots" stroke-width={5} d={dots(one.blocks.map((ratio, i) => [across(ratio), top + 22 + ((i * 7) % 11) * 3]))} />
    </>
  );
}

function whisker(from: number, to: number, y: number): string {
  return `M${from} ${y}H${to}M${from} ${y - 5}v10M${to} ${y - 5}v10`;
}

function said(one: Comparison, row: RatioRow): string[] {
  const lines = [`${t(row.name)}: ${row.words}`];
  lines.push(t("ratio {ratio}, margin ±{margin}", { ratio: significant(row.ratio, 4), margin: formatShare(one.margin) }));
  if (row.low !== null && row.high !== null) {
    lines.push(t("{share} interval {low} to {high}", { share: formatShare(one.confidence), low: significant(row.low, 4), high: significant(row.high, 4) }));
  }
  if (row === one.rows[0]) {
    lines.push(`${shortened(one.baseline, 60)} ${one.baseline_s === null ? "" : formatSeconds(one.baseline_s)} → ${shortened(one.candidate, 60)} ${one.candidate_s === null ? "" : formatSeconds(one.candidate_s)}`);
  }
  return lines;
}

/** Autocorrelation of the samples by distance, with the band in which independent samples stay. */
import { formatCount, significant } from "../../data/quantity";
import { t } from "../../i18n/language";
import { BELOW_TITLED, XAxis, YAxis, leftOf } from "../charts/Axes";
import type { Drawing } from "../charts/Chart";
import type { Spot } from "../charts/marks";
import { plain, scaleOf, type Tick } from "../charts/scale";
import type { Correlogram } from "./view";

const TOP = 10;
const HEIGHT = 154;
const RIGHT = 14;

export function drawLags(lags: Correlogram, width: number): Drawing {
  const bottom = TOP + HEIGHT;
  const reach = Math.max(lags.band * 1.6, ...lags.values.map(Math.abs)) * 1.08;
  const low = Math.min(-lags.band * 1.6, ...lags.values) * 1.08;
  const up = scaleOf({ low: Math.max(low, -1), high: Math.min(reach, 1), log: false }, bottom, TOP);
  const left = leftOf(up, plain);
  const across = scaleOf({ low: 0.5, high: lags.values.length + 0.5, log: false }, left, width - RIGHT);
  const spots = lags.values.map((value, i): Spot => ({
    x: across(i + 1),
    y: up(value),
    lines: [
      t("{count} samples apart", { count: formatCount((i + 1) * lags.every) }),
      t("correlation {value}", { value: significant(value) }),
      Math.abs(value) > lags.band ? t("beyond ±{band}", { band: significant(lags.band) }) : t("within ±{band}", { band: significant(lags.band) }),
    ],
  }));
  const every = lags.values.length > 20 ? 10 : lags.values.length > 10 ? 5 : 2;
  const ticks: Tick[] = [1, ...lags.values.map((_, i) => i + 1).filter((lag) => lag % every === 0)].map((lag) => ({
    value: lag,
    label: formatCount(lag * lags.every),
  }));
  const body = (
    <g>
      <YAxis scale={up} unit={plain} left={left} right={width - RIGHT} most={5} />
      <rect class="interval" x={left} width={width - RIGHT - left} y={up(lags.band)} height={Math.max(up(-lags.band) - up(lags.band), 1)} />
      <XAxis scale={across} unit={plain} top={bottom} bottom={bottom} ticks={ticks} title={t("samples apart")} />
      <line class="axis" x1={left} x2={width - RIGHT} y1={up(0)} y2={up(0)} />
      {lags.values.map((value, i) => (
        <line key={i} class={Math.abs(value) > lags.band ? "stem beyond" : "stem"} x1={across(i + 1)} x2={across(i + 1)} y1={up(0)} y2={up(value)} />
      ))}
    </g>
  );
  return { height: bottom + BELOW_TITLED, body, spots };
}

/** One cell of a table. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import { type Cell, type Column, isWords } from "./model";
import { exact, shown } from "./write";

interface Props {
  readonly column: Column;
  readonly value: Cell;
}

const SPARK_WIDTH = 90;
const SPARK_HEIGHT = 18;
/** Below so many characters a text fits, and needs no title. */
const SURELY_FITS = 16;

export function CellOf({ column, value }: Props): JSX.Element {
  const text = shown(column, value);
  if (isWords(column.kind)) {
    const whole = String(exact(value));
    const title = whole.length > SURELY_FITS ? whole : undefined;
    return <td class="words" title={title}>{column.kind === "code" && value !== null ? <code>{text}</code> : column.kind === "text" ? t(text) : text}</td>;
  }
  if (column.kind === "share" && typeof value === "number") {
    return (
      <td class="share">
        <span class="cell-track"><span style={{ width: `${100 * Math.max(0, Math.min(1, value))}%` }} /></span>
        <span class="figure">{text}</span>
      </td>
    );
  }
  if (Array.isArray(value)) return <td><Spark values={value as readonly number[]} label={text} /></td>;
  return <td title={column.kind === "ns" && typeof value === "number" ? `${value.toLocaleString("en-US")} ns` : undefined}>{text}</td>;
}

/** A small line from the first value to the last; the axis goes from the least to the largest. */
function Spark({ values, label }: { readonly values: readonly number[]; readonly label: string }): JSX.Element {
  return (
    <svg class="cell-spark" viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`} width={SPARK_WIDTH} height={SPARK_HEIGHT} role="img" aria-label={label}>
      <polyline points={sparkPoints(values)} />
    </svg>
  );
}

/** Points of a small line, in the coordinates of its box; values that are no numbers are left out. */
export function sparkPoints(values: readonly number[]): string {
  const known = values.filter((value) => Number.isFinite(value));
  const [low, high] = [known.reduce((a, b) => Math.min(a, b), Infinity), known.reduce((a, b) => Math.max(a, b), -Infinity)];
  const step = SPARK_WIDTH / Math.max(1, values.length - 1);
  return values
    .flatMap((value, i) => {
      if (!Number.isFinite(value)) return [];
      const share = high > low ? (value - low) / (high - low) : 0.5;
      return [`${(i * step).toFixed(1)},${(SPARK_HEIGHT - 2 - share * (SPARK_HEIGHT - 4)).toFixed(1)}`];
    })
    .join(" ");
}

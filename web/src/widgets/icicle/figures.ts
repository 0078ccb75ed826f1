/** A node in figures: lines of a tooltip, and of the details below the drawing. */
import { formatCount, formatNs, formatShare, significant } from "../../data/quantity";
import { t } from "../../i18n/language";
import { changeOf, signed } from "./change";
import { at, type Side, type Tree, type Weight } from "./tree";

/** One figure; with two sides the values are before, after and the change. */
export interface FigureLine {
  readonly label: string;
  readonly values: readonly string[];
}

interface Amount {
  readonly label: string;
  readonly values: (side: Side) => Float64Array;
  readonly format: (value: number) => string;
  /** What it is a share of. */
  readonly weight?: Weight;
}

/** Calls are counts, but per step they may be fractions. */
export function formatCalls(value: number): string {
  return Number.isInteger(value) ? formatCount(value) : significant(value);
}

/** The figures of a node, with their shares of the whole recording; what is nothing is left out. */
export function figuresOf(tree: Tree, node: number, whole: Tree): FigureLine[] {
  const isCaller = at(tree.up, node) === 1;
  const amounts: Amount[] = [
    { label: t("calls"), values: (side) => side.calls, format: formatCalls },
    { label: t(tree.slots === null ? "host time" : "time"), values: ({ total }) => total.host, format: formatNs, weight: "host" },
    { label: t(tree.slots === null ? "host time, self" : "self time"), values: ({ own }) => own.host, format: formatNs, weight: "host" },
    { label: t("device time"), values: ({ total }) => total.device, format: formatNs, weight: "device" },
    { label: t("device time, self"), values: ({ own }) => own.device, format: formatNs, weight: "device" },
  ];
  return amounts
    .filter(({ weight, values }) => {
      if (tree.sides.every((side) => at(values(side), node) === 0)) return false;
      const isOwn = weight !== undefined && tree.sides.some((side) => values(side) === side.own[weight]);
      return !(isOwn && isCaller); // of a caller only its part of the calls in the middle is known
    })
    .map((amount) => ({ label: amount.label, values: valuesOf(tree, node, amount, whole) }));
}

function valuesOf(tree: Tree, node: number, { values, format, weight }: Amount, of: Tree): string[] {
  const shown = tree.sides.map((side) => at(values(side), node) / side.divideBy);
  const [before = 0, after = 0] = shown;
  if (shown.length > 1) {
    const change = changeOf(before, after).text;
    const delta = signed(after - before, format);
    return [format(before), format(after), change === "" ? "" : `${delta} (${change})`];
  }
  const whole = weight === undefined ? 0 : at(of.sides[0]?.total[weight] ?? [], 0);
  return [whole > 0 ? `${format(before)} (${formatShare(before / whole)})` : format(before)];
}

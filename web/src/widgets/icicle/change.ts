/** How a node changed, for its colour and the text beside it. */
import { significant } from "../../data/quantity";
import { t } from "../../i18n/language";

/** From -3, shrank much, over 0, about as before, to 3, grew much. */
export type Level = -3 | -2 | -1 | 0 | 1 | 2 | 3;

/** A change in words and as a level. */
export interface Change {
  readonly level: Level;
  /** Such as `+12 %`, `new`, `gone`; empty where both sides are nothing. */
  readonly text: string;
}

const SAME = 0.01;
const SOME = 0.1;
const MUCH = 0.3;
const MANIFOLD = 10;

/** The change between two amounts. Which differences mean something, the verdict above says; this only draws them. */
export function changeOf(before: number, after: number): Change {
  if (before === 0 && after === 0) return { level: 0, text: "" };
  if (before === 0) return { level: 3, text: t("new") };
  if (after === 0) return { level: -3, text: t("gone") };
  const ratio = after / before;
  const distance = Math.abs(Math.log(ratio));
  const size = distance < Math.log1p(SAME) ? 0 : distance < Math.log1p(SOME) ? 1 : distance < Math.log1p(MUCH) ? 2 : 3;
  return { level: (ratio < 1 && size > 0 ? -size : size) as Level, text: ratioText(ratio) };
}

function ratioText(ratio: number): string {
  if (ratio >= MANIFOLD) return `×${significant(ratio, 2)}`;
  const percent = Math.abs(ratio - 1) * 100;
  if (percent < 0.05) return "±0 %";
  return `${ratio > 1 ? "+" : "−"}${percent.toFixed(percent < 9.95 ? 1 : 0)} %`;
}

/** A change of an amount with its sign. */
export function signed(value: number, format: (value: number) => string): string {
  if (value === 0) return "±0";
  return `${value > 0 ? "+" : "−"}${format(Math.abs(value))}`;
}

/** What the data block of verdicts holds; made by `report/payloads/verdict.py`. */
import type { Axis } from "../charts/scale";

/** One ratio with its interval. */
export interface RatioRow {
  readonly name: string;
  readonly ratio: number;
  readonly low: number | null;
  readonly high: number | null;
  readonly words: string;
  readonly reads: string;
}

/** One verdict. */
export interface Comparison {
  readonly baseline: string;
  readonly candidate: string;
  readonly outcome: string;
  readonly sentence: string;
  readonly metric: string;
  readonly margin: number;
  readonly smallest_effect: number;
  readonly confidence: number;
  readonly baseline_s: number | null;
  readonly candidate_s: number | null;
  readonly rows: readonly RatioRow[];
  readonly noun: string;
  readonly blocks: readonly number[];
  readonly running: readonly number[];
  readonly axis: Axis;
  readonly axis_of_blocks: Axis;
}

/** Verdicts that are looked at together. */
export interface VerdictView {
  readonly comparisons: readonly Comparison[];
  readonly axis: Axis;
}

const SIGNS: Readonly<Record<string, string>> = { faster: "◀", slower: "▶", same: "=", undecided: "?" };

/** A sign for an outcome, so that colour does not carry it alone. */
export function signOf(outcome: string): string {
  return SIGNS[outcome] ?? "";
}

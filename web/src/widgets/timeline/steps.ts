/** Steps as the ruler marks them: each by itself, or several as one mark where they are too narrow. */
import { type Range, toPixels } from "../../canvas/viewport";
import type { Scene } from "./scene";

/** A step, or several that follow each other. */
export interface StepMark {
  readonly from: number;
  readonly to: number;
  /** The only step of the mark; -1 where there are several. */
  readonly step: number;
  /** Whether it takes the second of two shades; the same wherever the view is moved. */
  readonly isOdd: boolean;
}

/** The marks in view, in pixels, and how many steps they stand for. */
export interface StepMarks {
  readonly marks: readonly StepMark[];
  readonly count: number;
  readonly isMerged: boolean;
}

const LEAST_PX = 4;

/** Mark the steps in view; where they are more than a mark for every few pixels, those that begin close together are one. */
export function stepMarks(steps: Scene["content"]["steps"], range: Range, width: number): StepMarks {
  const shown = [...steps.keys()].filter((i) => (steps[i]?.end_ns ?? 0) > range.start && (steps[i]?.start_ns ?? 0) < range.end);
  const isMerged = shown.length > width / LEAST_PX;
  const cellNs = ((range.end - range.start) / Math.max(width, 1)) * LEAST_PX;
  const marks: StepMark[] = [];
  let held = -1;
  for (const i of shown) {
    const { start_ns: start, end_ns: end } = steps[i] ?? { start_ns: 0, end_ns: 0 };
    const from = Math.max(toPixels(range, width, start), 0);
    const to = Math.min(toPixels(range, width, end), width);
    const cell = isMerged ? Math.floor(start / cellNs) : i;
    const last = marks.at(-1);
    if (last !== undefined && cell === held) marks[marks.length - 1] = { ...last, to: Math.max(last.to, to), step: -1 };
    else marks.push({ from, to, step: i, isOdd: cell % 2 !== 0 });
    held = cell;
  }
  return { marks, count: shown.length, isMerged };
}

/** How a run under way went so far. */
import type { Running, RunningNow } from "./feed";

/** How long a step took at some time after the start. */
export interface Moment {
  readonly elapsed_s: number;
  readonly step_s: number;
}

/** Moments that are kept; beyond them every second one is left out, so that the whole run stays in view. */
export const MOST = 600;

/** With what was told now; unchanged when that is not later than the last, or tells of no step. */
export function extended(course: readonly Moment[], { running, elapsed_s }: RunningNow): readonly Moment[] {
  const last = course.at(-1);
  if (running.step_s === null || running.step_s <= 0 || (last !== undefined && elapsed_s <= last.elapsed_s)) return course;
  const all = [...course, { elapsed_s, step_s: running.step_s }];
  return all.length <= MOST ? all : all.filter((_, i) => i % 2 === 0 || i === all.length - 1);
}

/** What the run itself remembers, followed by what was heard since. */
export function joined({ course }: Running, heard: readonly Moment[]): readonly Moment[] {
  const told = course.filter(([, step_s]) => step_s > 0).map(([elapsed_s, step_s]) => ({ elapsed_s, step_s }));
  const end = told.at(-1)?.elapsed_s ?? -Infinity;
  return [...told, ...heard.filter(({ elapsed_s }) => elapsed_s > end)];
}

/** The share that a bar shows; null where it is not known, or where all that was shared out is done and more follows. */
export function shownShare(share: number | null): number | null {
  return share === null || share >= 1 ? null : Math.max(share, 0);
}

/** A time that goes on: `1:05`, `2:03:09`. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value: number): string => String(value).padStart(2, "0");
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** How much longer the longest step may be than the shortest before an axis counts in powers. */
const LOG_ABOVE = 6;

/** From where to where the axis of step times goes; a few long steps must not press all others to the floor. */
export function stepAxis(course: readonly Moment[]): { readonly low: number; readonly high: number; readonly log: boolean } {
  const times = course.map(({ step_s }) => step_s);
  const [low, high] = [Math.min(...times), Math.max(...times)];
  if (high > LOG_ABOVE * low) return { low: low / 1.3, high: high * 1.3, log: true };
  const pad = Math.max((high - low) * 0.1, high * 0.05);
  return { low: Math.max(low - pad, 0), high: high + pad, log: false };
}

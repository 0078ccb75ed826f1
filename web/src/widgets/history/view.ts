/** What the data block of earlier runs holds; made by `report/payloads/history.py`. */
import type { Axis } from "../charts/scale";

/** An earlier measurement of the same target. */
export interface PastRun {
  readonly run_id: string;
  readonly created: string;
  readonly commit_sha: string | null;
  readonly median_s: number;
  readonly low_s: number | null;
  readonly high_s: number | null;
  readonly headline: string;
  readonly change: string | null;
}

/** A target's medians from run to run, the oldest first. */
export interface HistoryView {
  readonly runs: readonly PastRun[];
  readonly own: number | null;
  readonly deadline_s: number | null;
  readonly axis: Axis;
}

/** What the data block of a measurement holds; made by `report/payloads/measurement.py`. */
import type { Axis } from "../charts/scale";

/** A line across a distribution. */
export interface Mark {
  readonly name: string;
  readonly value_s: number;
  readonly low_s: number | null;
  readonly high_s: number | null;
}

/** How the samples are spread. */
export interface Spread {
  readonly axis: Axis;
  readonly edges_s: readonly number[];
  readonly counts: readonly number[];
  readonly beyond: number;
  readonly steps_s: readonly number[];
  readonly shares: readonly number[];
  readonly marks: readonly Mark[];
}

/** A stretch of samples that follow each other. */
export interface TimeBlock {
  readonly first: number;
  readonly end: number;
  readonly median_s: number;
  readonly low_s: number | null;
  readonly high_s: number | null;
}

/** A straight line through the medians of the blocks. */
export interface Trend {
  readonly start_s: number;
  readonly end_s: number;
  readonly change: number;
  readonly low: number | null;
  readonly high: number | null;
  readonly trend: string;
}

/** How the samples follow each other. */
export interface Course {
  readonly axis: Axis;
  readonly index: readonly number[];
  readonly samples_s: readonly number[];
  readonly outliers: readonly number[];
  readonly num_samples: number;
  readonly thinned: string | null;
  readonly blocks: readonly TimeBlock[];
  readonly trend: Trend | null;
  readonly warmup_axis: Axis | null;
  readonly warmup_s: readonly number[];
  readonly warmup_steps: number;
}

/** How alike samples are that lie so many samples apart. */
export interface Correlogram {
  readonly values: readonly number[];
  readonly band: number;
  readonly beyond: number;
  readonly every: number;
}

/** A measurement. */
export interface MeasurementView {
  readonly name: string;
  readonly median_s: number;
  readonly low_s: number;
  readonly high_s: number;
  readonly confidence: number;
  readonly steady: boolean;
  readonly steps_per_sample: number;
  readonly num_samples: number;
  readonly effective_num_samples: number;
  readonly autocorrelation_time: number;
  readonly deadline_s: number | null;
  readonly deadline_missed_share: number | null;
  readonly spread: Spread | null;
  readonly course: Course | null;
  readonly correlogram: Correlogram | null;
}

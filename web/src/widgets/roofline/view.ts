/** What the data block of a roofline holds; made by `report/payloads/roofline.py`. */
import type { Axis } from "../charts/scale";

/** What one operator reached on inputs of one shape. */
export interface Reached {
  readonly name: string;
  readonly shapes: string;
  readonly dtypes: string;
  readonly calls: number;
  readonly time_ns: number;
  readonly share: number;
  readonly intensity: number;
  readonly flop_per_s: number;
  readonly bytes_per_s: number | null;
  readonly share_of_roof: number | null;
  readonly bound: string;
  readonly place: string | null;
}

/** A rate that the machine does not exceed. */
export interface Ceiling {
  /** The type of the arithmetic, or memory or cache. */
  readonly name: string;
  readonly rate: number;
  /** What half of the timings reached; null where it was not measured. */
  readonly low: number | null;
  readonly source: string;
  readonly is_measured: boolean;
  readonly work: string;
}

/** The operators of one rank. */
export interface RooflineView {
  readonly rank: number;
  readonly device: string;
  readonly points: readonly Reached[];
  readonly omitted: number;
  readonly covered_share: number | null;
  readonly ceilings: readonly Ceiling[];
  readonly slopes: readonly Ceiling[];
  readonly source: string | null;
  readonly across: Axis;
  readonly up: Axis;
}

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

/** The most arithmetic that the machine does in one type. */
export interface Ceiling {
  readonly name: string;
  readonly flop_per_s: number;
}

/** The operators of one rank. */
export interface RooflineView {
  readonly rank: number;
  readonly device: string;
  readonly points: readonly Reached[];
  readonly omitted: number;
  readonly covered_share: number | null;
  readonly ceilings: readonly Ceiling[];
  readonly bytes_per_s: number | null;
  readonly source: string | null;
  readonly across: Axis;
  readonly up: Axis;
}

/** The loading block as Python writes it (`report/payloads/loading.py`), and questions to it that need no browser. */

export interface Station {
  readonly name: string;
  readonly doing: "making" | "waiting" | "handing over" | "computing";
  readonly slot: number;
  readonly meaning: string;
  readonly per_step_s: number;
  readonly share: number;
  readonly cpu_share: number | null;
  /** Why this station matters most; empty for the others. */
  readonly mark: string;
}

export interface Lane {
  readonly where: string;
  readonly title: string;
  readonly count: number;
  readonly stations: readonly Station[];
  readonly total_s: number;
  readonly pace_s: number;
}

export interface Queue {
  readonly batches: number;
  readonly occupancy: number | null;
  readonly said: string;
}

export interface Pace {
  readonly label: string;
  readonly step_s: number;
  readonly note: string;
  readonly kind: "part" | "measured" | "predicted";
  readonly slowest: boolean;
}

export interface Prospect {
  readonly label: string;
  readonly step_s: number;
  readonly ratio: number;
  readonly said: string;
  readonly kind: "now" | "advice" | "bound";
}

export interface Epoch {
  readonly batches: number;
  readonly start_s: number;
  readonly data_s: number;
  readonly work_s: number;
  readonly note: string;
}

export interface LoadingView {
  readonly verdict: string;
  readonly good: boolean;
  readonly sentence: string;
  readonly settings: string;
  readonly step_s: number;
  readonly lanes: readonly Lane[];
  readonly queue: Queue | null;
  readonly bottleneck: string;
  /** Which steps the figures are of. */
  readonly steps: string;
  readonly paces: readonly Pace[];
  readonly prospects: readonly Prospect[];
  readonly epoch: Epoch | null;
  readonly missing: readonly string[];
}

/** Lanes before the queue and behind it: workers fill it, everything else takes from it. */
export function aroundQueue(lanes: readonly Lane[]): { readonly before: readonly Lane[]; readonly behind: readonly Lane[] } {
  return { before: lanes.filter(({ where }) => where === "worker"), behind: lanes.filter(({ where }) => where !== "worker") };
}

/** Stations that take any time; a lane of which none does keeps its first, so that it is seen. */
export function lasting({ stations }: Lane): readonly Station[] {
  const some = stations.filter(({ per_step_s }) => per_step_s > 0);
  return some.length > 0 ? some : stations.slice(0, 1);
}

/** Batches of the queue that are drawn, and how many of them as full: at most so many, the share kept. */
export function slotsOf({ batches, occupancy }: Queue, most = 16): { readonly drawn: number; readonly full: number } {
  const drawn = Math.min(Math.max(batches, 0), most);
  return { drawn, full: (occupancy ?? 0) * drawn };
}

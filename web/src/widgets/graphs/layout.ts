/** Arranging a small graph in rows: by dagre in a worker, or plainly where no worker can be started. */
import script from "./layout.worker";

/** Boxes by width and height, and lines between them by number. */
export interface ToArrange {
  readonly sizes: readonly (readonly [number, number])[];
  readonly edges: readonly (readonly [number, number])[];
}

/** Upper left corners, and the points of each line, x and y in turn. */
export interface Arranged {
  readonly x: readonly number[];
  readonly y: readonly number[];
  readonly points: readonly (readonly number[])[];
  readonly width: number;
  readonly height: number;
  /** Why it is arranged plainly; absent where it is not. */
  readonly plainly?: string;
}

/** More are not arranged on the page's own thread. */
export const MOST_PLAIN = 150;
const PATIENCE_MS = 20_000;
const GAP = 18;
const ROW_GAP = 34;
const MARGIN = 16;

/** Arrange boxes; rejects where no worker can be started and there are too many to do without. */
export async function arrange(asked: ToArrange): Promise<Arranged> {
  try {
    return await inWorker(asked);
  } catch (error) {
    if (asked.sizes.length > MOST_PLAIN) throw error;
    return { ...arrangePlainly(asked), plainly: String(error) };
  }
}

async function inWorker(asked: ToArrange): Promise<Arranged> {
  const address = URL.createObjectURL(new Blob([await script()], { type: "text/javascript" }));
  const ended = new AbortController();
  let worker: Worker | null = null;
  const result = new Promise<Arranged>((resolve, reject) => {
    worker = new Worker(address);
    worker.onmessage = (event: MessageEvent<Arranged | { readonly failure: string }>) =>
      "failure" in event.data ? reject(new Error(event.data.failure)) : resolve(event.data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message || "the worker could not be started"));
    };
    const timer = setTimeout(() => reject(new Error("arranging takes too long")), PATIENCE_MS);
    ended.signal.addEventListener("abort", () => clearTimeout(timer));
    worker.postMessage(asked);
  });
  return result.finally(() => {
    ended.abort();
    worker?.terminate();
    URL.revokeObjectURL(address);
  });
}

/** Rows by longest paths, each ordered by the middle of what leads to it, and centred. */
export function arrangePlainly({ sizes, edges }: ToArrange): Arranged {
  const rows = rowsOf(sizes.length, edges);
  const above: number[][] = sizes.map(() => []);
  for (const [source, target] of edges) above[target]?.push(source);
  const centre: number[] = sizes.map(() => 0);
  const y: number[] = sizes.map(() => 0);
  let top = MARGIN;
  let widest = 0;
  for (const row of rows) {
    const middle = (box: number): number => {
      const near = above[box] ?? [];
      return near.reduce((sum, one) => sum + (centre[one] ?? 0), 0) / Math.max(near.length, 1);
    };
    row.sort((a, b) => middle(a) - middle(b) || a - b);
    const length = row.reduce((sum, box) => sum + (sizes[box]?.[0] ?? 0) + GAP, -GAP);
    widest = Math.max(widest, length);
    let left = -length / 2;
    for (const box of row) {
      const [width] = sizes[box] ?? [0, 0];
      centre[box] = left + width / 2;
      y[box] = top;
      left += width + GAP;
    }
    top += Math.max(...row.map((box) => sizes[box]?.[1] ?? 0)) + ROW_GAP;
  }
  const x = sizes.map(([width], box) => (centre[box] ?? 0) - width / 2 + widest / 2 + MARGIN);
  const points = edges.map(([source, target]) => [
    (centre[source] ?? 0) + widest / 2 + MARGIN,
    (y[source] ?? 0) + (sizes[source]?.[1] ?? 0),
    (centre[target] ?? 0) + widest / 2 + MARGIN,
    y[target] ?? 0,
  ]);
  return { x, y, points, width: widest + 2 * MARGIN, height: Math.max(top - ROW_GAP, 0) + MARGIN };
}

function rowsOf(count: number, edges: readonly (readonly [number, number])[]): number[][] {
  const row = Array.from({ length: count }, () => 0);
  for (const [source, target] of [...edges].sort(([a], [b]) => a - b)) {
    row[target] = Math.max(row[target] ?? 0, (row[source] ?? 0) + 1);
  }
  const rows: number[][] = [];
  row.forEach((place, box) => (rows[place] ??= []).push(box));
  return rows.filter((boxes) => boxes !== undefined);
}

/** A small trace for tests of the timeline. */
import type { TraceContent } from "../src/widgets/timeline/scene";

/** A stream with two kernels and a merged slice; a thread with an operator around a call, and one more operator. */
export const CONTENT: TraceContent = {
  rank: 3,
  path: "trace.json",
  origin_ns: 5000,
  span_ns: 1000,
  names: ["gemm", "aten::mm", "cudaLaunchKernel", "(small)"],
  kinds: ["kernel", "cpu_op", "runtime"],
  tracks: [
    { name: "stream 7", process: "device 0", is_device: true, num_rows: 1, pid: "0", tid: "7" },
    { name: "main", process: "python", is_device: false, num_rows: 2, pid: "100", tid: "100" },
  ],
  steps: [{ name: "ProfilerStep#0", start_ns: 0, end_ns: 600 }],
  lanes: { track: [0, 1, 1], row: [0, 0, 1], num_slices: [3, 2, 1] },
  labels: { name: [0, 1, 2, 3], kind: [0, 1, 2, 0] },
  slices: { gap_ns: [200, 50, 50, 0, 300, 20], dur_ns: [100, 100, 500, 150, 50, 30], label: [0, 0, 3, 1, 1, 2] },
  merged: { slice: [2], num_events: [9], busy_ns: [250] },
  launches: { slice: [0, 1], source: [5, 0] },
  num_slices: 14,
  notice: null,
};

/** The tables of the operators page: their columns, how they are sorted at first, and what a row is called elsewhere. */
import type { Column, Columnar, Rows, Sort } from "../table/model";

/** One table. */
export interface Sheet {
  /** Name of its columns in the block. */
  readonly key: string;
  /** English. */
  readonly title: string;
  /** How to read it; English. */
  readonly how: string;
  readonly columns: readonly Column[];
  readonly sort: readonly Sort[];
  /** What to search for in the timeline and the flame graph; empty when a row has no name there. */
  readonly term: (rows: Rows, row: number) => string;
}

/** A table as a block carries it. */
export interface Listed extends Columnar {
  readonly num_rows: number;
  readonly num_listed: number;
}

const CALLS: Column = { key: "calls", title: "Calls", kind: "count" };
const WHERE: Column = { key: "where", title: "Where", kind: "place", help: "Source line, else module, else phase, of the longest call." };
const MEAN: Column = { key: "mean_ns", title: "Mean", kind: "ns", help: "Of one call." };

const OPERATORS: Sheet = {
  key: "operators",
  title: "Operators",
  how: "Self time is what an operator takes without those nested in it; device time is that of the kernels, copies and fills that it launches itself. Rows of self times sum to the whole, totals hold each other.",
  columns: [
    { key: "name", title: "Operator", kind: "code", wide: 34 },
    { key: "device_self_ns", title: "Device self", kind: "ns", help: "Device work that it launched itself." },
    { key: "device_share", title: "Device share", kind: "share", help: "Device self time over the span of the trace." },
    { key: "host_self_ns", title: "Host self", kind: "ns", help: "Time in which no nested operator runs." },
    { key: "host_share", title: "Host share", kind: "share", help: "Host self time over the span of the trace." },
    CALLS,
    { ...MEAN, title: "Mean, host total", help: "Host duration of one call, with what is nested in it." },
    { key: "flop_per_s", title: "FLOP/s", kind: "rate", unit: "FLOP/s", help: "Over the time of those calls whose arithmetic a formula gives." },
    { key: "bytes_per_s", title: "Traffic", kind: "rate", unit: "B/s", help: "The least bytes that must move, by formula, over the time of those calls." },
    { key: "num_kernels", title: "Kernels", kind: "count", help: "Launched at or below it." },
    { key: "device_total_ns", title: "Device total", kind: "ns", hidden: true },
    { key: "host_total_ns", title: "Host total", kind: "ns", hidden: true },
    { key: "max_ns", title: "Longest", kind: "ns", help: "Host duration of one call.", hidden: true },
    { key: "forward_ns", title: "Forward, host", kind: "ns", hidden: true },
    { key: "backward_ns", title: "Backward, host", kind: "ns", hidden: true },
  ],
  sort: [{ key: "device_self_ns", down: true }, { key: "host_self_ns", down: true }],
  term: (rows, row) => text(rows, "name", row),
};

const SHAPES: Sheet = {
  key: "shapes",
  title: "By shape",
  how: "Operators with the shapes and types of their inputs. FLOP and bytes follow from shapes by the formulas of each operator; traffic is the least that must move, so caches and re-reads are not in it.",
  columns: [
    { key: "name", title: "Operator", kind: "code", wide: 26 },
    { key: "shapes", title: "Shapes", kind: "code", wide: 30 },
    { key: "time_ns", title: "Time", kind: "ns", help: "Of their device work; without devices, own time on the host." },
    { key: "share", title: "Share", kind: "share", help: "Of the sum over all rows." },
    CALLS,
    MEAN,
    { key: "flop_per_s", title: "FLOP/s", kind: "rate", unit: "FLOP/s" },
    { key: "bytes_per_s", title: "Traffic", kind: "rate", unit: "B/s", help: "The least bytes that must move, over the time." },
    { key: "share_of_roof", title: "Of the roof", kind: "share", help: "Of what the device allows at this intensity; above 100 % where data stayed in a cache." },
    { key: "bound", title: "Bound by", kind: "text", wide: 14 },
    { key: "dtypes", title: "Types", kind: "code", hidden: true },
    { key: "intensity", title: "Intensity", kind: "number", unit: "FLOP/B", hidden: true },
    { key: "flop", title: "FLOP", kind: "rate", unit: "FLOP", hidden: true },
    { key: "num_bytes", title: "Bytes", kind: "bytes", hidden: true },
    WHERE,
  ],
  sort: [{ key: "time_ns", down: true }],
  term: (rows, row) => text(rows, "name", row),
};

const KERNELS: Sheet = {
  key: "kernels",
  title: "Kernels",
  how: "All launches of one kernel in a row; shares are of the sum over all kernels, which exceeds the time that devices are busy where streams overlap.",
  columns: [
    { key: "short_name", title: "Kernel", kind: "code", wide: 38 },
    { key: "total_ns", title: "Time", kind: "ns" },
    { key: "share", title: "Share", kind: "share", help: "Of the sum over all kernels." },
    CALLS,
    MEAN,
    { key: "category", title: "Category", kind: "text", wide: 14 },
    { key: "occupancy", title: "Occupancy", kind: "share", help: "Estimated: threads resident over those that fit, weighted with duration." },
    { key: "tail_share", title: "Empty tail", kind: "share", help: "Block slots of all waves that stay empty." },
    { key: "op", title: "Operator", kind: "code", wide: 24, help: "That launched the longest." },
    WHERE,
    { key: "tensor_cores", title: "Matrix units", kind: "text", wide: 8, hidden: true },
    { key: "min_ns", title: "Shortest", kind: "ns", hidden: true },
    { key: "max_ns", title: "Longest", kind: "ns", hidden: true },
    { key: "name", title: "Whole name", kind: "code", wide: 60, hidden: true },
  ],
  sort: [{ key: "total_ns", down: true }],
  term: (rows, row) => text(rows, "name", row),
};

const LINES: Sheet = {
  key: "lines",
  title: "Functions",
  how: "Time belongs to the innermost function of your own code around it; backward work belongs to the function that ran its forward operator. The line is where a function begins.",
  columns: [
    { key: "where", title: "Function", kind: "place", wide: 44 },
    { key: "device_ns", title: "Device", kind: "ns", help: "Launched while the function was the innermost." },
    { key: "device_share", title: "Device share", kind: "share", help: "Of the span of the trace." },
    { key: "self_ns", title: "Host self", kind: "ns", help: "Host time that no other function of yours took below it." },
    { key: "host_share", title: "Host share", kind: "share", help: "Of the span of the trace." },
    CALLS,
    { key: "num_ops", title: "Operators", kind: "count" },
    { key: "num_kernels", title: "Kernels", kind: "count" },
    { key: "top_ops", title: "Most of it in", kind: "code", wide: 40 },
    { key: "total_ns", title: "Host total", kind: "ns", hidden: true },
    { key: "forward_ns", title: "Forward, host", kind: "ns", hidden: true },
    { key: "backward_ns", title: "Backward, host", kind: "ns", hidden: true },
  ],
  sort: [{ key: "device_ns", down: true }, { key: "self_ns", down: true }],
  term: (rows, row) => functionOf(text(rows, "where", row)),
};

const MODULES: Sheet = {
  key: "modules",
  title: "Modules",
  how: "In the order of their first calls, which puts submodules below their module. Totals hold the submodules; backward time belongs to the module whose forward operator recorded it.",
  columns: [
    { key: "module", title: "Module", kind: "code", wide: 36 },
    { key: "device_total_ns", title: "Device total", kind: "ns", help: "With its submodules." },
    { key: "device_share", title: "Device share", kind: "share", help: "Total over the span." },
    { key: "host_total_ns", title: "Host total", kind: "ns", help: "With its submodules." },
    { key: "host_share", title: "Host share", kind: "share", help: "Total over the span." },
    { key: "device_self_ns", title: "Device self", kind: "ns", help: "Without its submodules." },
    { key: "host_self_ns", title: "Host self", kind: "ns", help: "Without its submodules." },
    CALLS,
    { ...MEAN, title: "Mean, host total", help: "Host duration of one call, with what is nested in it." },
    { key: "num_kernels", title: "Kernels", kind: "count" },
    { key: "depth", title: "Depth", kind: "count", hidden: true },
    { key: "parent", title: "Within", kind: "code", hidden: true },
    { key: "forward_ns", title: "Forward, host", kind: "ns", hidden: true },
    { key: "backward_ns", title: "Backward, host", kind: "ns", hidden: true },
    { key: "forward_device_ns", title: "Forward, device", kind: "ns", hidden: true },
    { key: "backward_device_ns", title: "Backward, device", kind: "ns", hidden: true },
  ],
  sort: [],
  term: (rows, row) => text(rows, "module", row),
};

const COPIES: Sheet = {
  key: "copies",
  title: "Copies",
  how: "Copies and fills by direction and by the place that launched them.",
  columns: [
    { key: "kind", title: "Copies", kind: "text", wide: 16 },
    { key: "total_ns", title: "Time", kind: "ns" },
    { key: "share", title: "Share", kind: "share", help: "Of the time of all copies." },
    { key: "num_copies", title: "Number", kind: "count" },
    { key: "total_bytes", title: "Bytes", kind: "bytes" },
    { key: "bytes_per_s", title: "Rate", kind: "rate", unit: "B/s" },
    { key: "op", title: "Operator", kind: "code" },
    { ...WHERE, wide: 40 },
  ],
  sort: [{ key: "total_ns", down: true }],
  term: (rows, row) => text(rows, "op", row),
};

/** In the order of the tabs. */
export const SHEETS: readonly Sheet[] = [OPERATORS, SHAPES, KERNELS, LINES, MODULES, COPIES];

/** Of `model.py:12 forward` the function. */
export function functionOf(where: string): string {
  return /:\d+ (.+)$/.exec(where)?.[1] ?? where;
}

function text(rows: Rows, column: string, row: number): string {
  const value = rows.cell(column, row);
  return typeof value === "string" && value !== "(other)" && value !== "(no name)" ? value : "";
}

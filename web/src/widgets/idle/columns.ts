/** The tables of the idle page. */
import type { Column } from "../table/model";

export const GAPS: readonly Column[] = [
  { key: "dur_ns", title: "Gap", kind: "ns" },
  { key: "start_ns", title: "Begins at", kind: "ns", help: "Since the start of the trace." },
  { key: "share", title: "Of idle time", kind: "share", help: "Of all attributed idle time." },
  { key: "cause", title: "Why", kind: "text", wide: 34 },
  { key: "doing", title: "The host", kind: "text", wide: 22, help: "What it did most of the time." },
  { key: "name", title: "Namely", kind: "code", wide: 30, help: "Operator, function, call or annotation." },
  { key: "where", title: "Where", kind: "place", wide: 34, help: "Place of what the host did, else of the launch that ended the gap." },
  { key: "step", title: "Step", kind: "count" },
  { key: "device", title: "Device", kind: "count", hidden: true },
  { key: "previous", title: "Work before", kind: "code", wide: 34, hidden: true },
  { key: "next", title: "Work after", kind: "code", wide: 34, hidden: true },
];

export const GROUPS: readonly Column[] = [
  { key: "cause", title: "Why", kind: "text", wide: 34 },
  { key: "doing", title: "Meanwhile the host", kind: "text", wide: 24 },
  { key: "total_ns", title: "Time", kind: "ns" },
  { key: "share", title: "Of idle time", kind: "share", help: "Of all attributed idle time." },
  { key: "num_gaps", title: "Gaps", kind: "count" },
  { key: "after_short_ns", title: "After short kernels", kind: "ns", help: "In gaps that follow a kernel below 10 µs, which ended before more was launched." },
  { key: "such_as", title: "Such as", kind: "text", wide: 44 },
];

export const SYNCS: readonly Column[] = [
  { key: "name", title: "Call", kind: "code", wide: 28 },
  { key: "where", title: "Where", kind: "place", wide: 36 },
  { key: "num_calls", title: "Calls", kind: "count" },
  { key: "per_step", title: "Per step", kind: "number" },
  { key: "stalled_ns", title: "Stalled", kind: "ns", help: "Of the time in the calls, while a device was at work." },
  { key: "total_ns", title: "In the calls", kind: "ns", help: "How long the host was in them." },
  { key: "max_ns", title: "Longest", kind: "ns" },
  { key: "idle_after_ns", title: "Device idle after", kind: "ns", help: "Idle time of devices that drained during one of the calls." },
  { key: "waited_for", title: "Waited for", kind: "code", wide: 30, help: "Device work that ended last within the longest of the waits." },
  { key: "calls", title: "Inside", kind: "code", wide: 30, hidden: true },
  { key: "thread", title: "Thread", kind: "text", hidden: true },
];

export const STREAMS: readonly Column[] = [
  { key: "stream", title: "Stream", kind: "text" },
  { key: "idle_ns", title: "Idle", kind: "ns", help: "Between its first work and its last." },
  { key: "num_gaps", title: "Gaps", kind: "count" },
  { key: "host_wait_ns", title: "Launched too late", kind: "ns", help: "The next work was launched only after the work before it had ended." },
  { key: "kernel_wait_ns", title: "Turn-around", kind: "ns", help: "Launched in time, and at most 30 µs." },
  { key: "other_wait_ns", title: "Event or other stream", kind: "ns", help: "Launched in time, and waited longer." },
  { key: "unknown_ns", title: "Launch not in the trace", kind: "ns" },
];

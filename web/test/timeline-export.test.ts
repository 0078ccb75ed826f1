import { expect, it } from "vitest";
import { microseconds, perfettoJson } from "../src/export/perfetto";
import { sceneOf } from "../src/widgets/timeline/scene";
import { CONTENT } from "./timeline-content";

interface Event {
  readonly ph: string;
  readonly name: string;
  readonly [key: string]: unknown;
}

const read = (from: number, to: number): Event[] =>
  (JSON.parse(perfettoJson(sceneOf(CONTENT), { start: from, end: to })) as { traceEvents: Event[] }).traceEvents;

it("writes whole slices that overlap the range, in microseconds", () => {
  const slices = read(120, 210).filter(({ ph }) => ph === "X");
  const first = Math.floor(sceneOf(CONTENT).axis.start);
  expect(slices.map(({ name, ts, dur, cat }) => [name, ts, dur, cat])).toEqual([
    ["gemm", (200 - first) / 1000, 0.1, "kernel"],
    ["aten::mm", -first / 1000, 0.15, "cpu_op"],
  ]);
});

it("joins launches by correlation and by flows", () => {
  const events = read(0, 1000);
  const linked = events.filter(({ args }) => (args as { correlation?: number } | undefined)?.correlation === 1);
  expect(linked.map(({ name }) => name)).toEqual(["gemm", "gemm", "cudaLaunchKernel"]);
  expect(events.filter(({ cat }) => cat === "ac2g").map(({ ph }) => ph)).toEqual(["s", "f", "f"]);
});

it("leaves out flows of which one end is outside", () => {
  expect(read(340, 400).filter(({ cat }) => cat === "ac2g")).toEqual([]);
});

it("names tracks, and tells how many a merged slice stands for", () => {
  const events = read(0, 1000);
  expect(events.filter(({ name }) => name === "thread_name").map(({ args }) => args)).toEqual([{ name: "stream 7" }, { name: "main" }]);
  expect(events.find(({ name }) => name === "(small)")?.["args"]).toMatchObject({ merged_slices: 9, device: 0, stream: 7 });
});

it("keeps nanoseconds of long recordings", () => {
  expect([0, 1, 999, 1000, -1500, 86_400_000_000_001].map(microseconds)).toEqual([
    "0.000", "0.001", "0.999", "1.000", "-1.500", "86400000000.001",
  ]);
});

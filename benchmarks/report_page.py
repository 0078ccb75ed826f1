"""How long a report takes to open, and how smoothly its drawings move, in a headless Chromium.

    python benchmarks/report_page.py [--only timeline] [--rounds 7] [--events 200000,1000000]

Pages are made in a temporary folder and opened from disk, each round in a fresh browser context. `open` is from the request
until the drawing has been painted; `fps` is what the drawing reached while it was zoomed and moved without a pause,
and is bounded by the display rate of 60. Each figure is a median with its interval over the rounds. There is no GPU:
a desktop browser does better.

To measure a further drawing, add a function that makes its pages to `AREAS`: the rest is shared.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from playwright.sync_api import sync_playwright

from pyrometer.bench.quantiles import estimate_quantile
from pyrometer.compiler.costs.record import CacheSummary, CompileCost
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.recompiles.record import GuardSummary
from pyrometer.compiler.report import CompileReport
from pyrometer.evidence.evidence import Evidence
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import CompileDocument, TraceDocument
from pyrometer.report.html import write_report
from pyrometer.rules.explain import explain
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.view.view import view_trace

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
FRAMES = 90
WARM_UP = 10

MOVE = """async ([selector, kind, frames]) => {
  const drawing = document.querySelector(selector), box = drawing.getBoundingClientRect(), times = [];
  let last = performance.now();
  for (let i = 0; i < frames; i++) {
    const forth = i % 40 < 20;
    const turn = kind === "zoom" ? { deltaY: forth ? -60 : 60, ctrlKey: true } : { deltaX: forth ? 25 : -25 };
    const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 3 };
    drawing.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, ...at, ...turn }));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    times.push(performance.now() - last);
    last = performance.now();
  }
  return times;
}"""


class Case(NamedTuple):
    """A page to measure: where its drawing stands, and what to do with it once it is open."""

    name: str
    path: Path
    fragment: str
    drawing: str
    movements: tuple[str, ...] = ("zoom", "pan")


def timeline_cases(folder: Path, options: argparse.Namespace) -> Iterator[Case]:
    """Synthetic traces of several sizes, and a real one where the folder of traces is there."""
    counts = map(int, options.events.split(","))
    sources = [(f"{count:,} events", write_trace(folder / f"{count}.json", count)) for count in counts]
    real = options.traces / "v100_ddp_5steps.json.gz"
    if real.is_file():
        sources.append(("V100, five steps", real))
    for name, source in sources:
        yield Case(name, trace_page(name, source, folder), "#/timeline", ".timeline-view canvas")


def trace_page(name: str, source: Path, folder: Path) -> Path:
    """The page of a trace file, with what making it cost."""
    rank = read_trace(source, cache=None).ranks[0]
    _ = rank.events, rank.activity
    start = time.perf_counter()
    view = view_trace(rank)
    took = time.perf_counter() - start
    evidence = Evidence(target=source.name)  # the drawing alone: analyses add a few static charts
    document = TraceDocument.of(evidence, explain(evidence))
    path = write_report(document, folder / f"{source.name}.html", Attachments(traces=[view]))
    drawn = f"{len(view.slices.label):,} of {view.num_slices:,} slices drawn"
    print(f"  {name}: {drawn}, view {took:.2f} s, page {path.stat().st_size / 1e6:.2f} MB", flush=True)
    return path


def graph_cases(folder: Path, _options: argparse.Namespace) -> Iterator[Case]:
    """A graph of 2,000 operations, collapsed by module, and operation by operation."""
    report = CompileReport(
        graphs=1, frames=1, skipped_frames=0, breaks=[], recompiles=[], limit_reached=False, artifact_bytes=0,
        guards=GuardSummary(), cost=CompileCost(), cache=CacheSummary(), graph_records=[chain_graph(2000)],
    )  # fmt: skip
    evidence = Evidence(target="graph", compiled=report)
    document = CompileDocument(evidence=evidence, diagnosis=explain(evidence))
    start = time.perf_counter()
    path = write_report(document, folder / "graph.html")
    text = f"made in {time.perf_counter() - start:.2f} s, page {path.stat().st_size / 1e6:.2f} MB"
    print(f"  2,000 operations: {text}", flush=True)
    yield Case("by module", path, "#/compile", "svg.graph-svg")
    yield Case("operation by operation", path, "#/compile?open=-1", "svg.graph-svg")


def chain_graph(num_ops: int) -> Graph:
    """A chain in modules of 20 operations, with residual lines over each module and over five of them."""
    nodes = [GraphNode(name="n-1", op="input", role="input", dtype="float32", shape=["8", "512"])]
    for place in range(num_ops):
        back = [place - 20] * (place % 20 == 19) + [place - 100] * (place % 100 == 99)
        inputs = [f"n{place - 1}", *(f"n{max(one, -1)}" for one in back)]
        target = ("aten.mm.default", "aten.add.Tensor", "aten.relu.default")[place % 3]
        module = f"layers.{place // 20}.{('attention', 'mlp')[place % 20 // 10]}"
        nodes.append(
            GraphNode(
                name=f"n{place}", op="call", target=target, inputs=inputs, module=module, dtype="float32", shape=["8", "512"],
                num_bytes=16_384, file="model.py", line=10 + place % 20, source="x = self.step(x)",
            )
        )  # fmt: skip
    nodes.append(GraphNode(name="output", op="output", inputs=[f"n{num_ops - 1}"]))
    return Graph(compile_id="0/0", stage="dynamo", nodes=nodes, num_ops=num_ops)


AREAS: dict[str, Callable[[Path, argparse.Namespace], Iterator[Case]]] = {
    "timeline": timeline_cases,
    "graph": graph_cases,
}
"""What can be measured: a function that makes the pages of each drawing."""


def write_trace(path: Path, num_events: int) -> Path:
    """A trace as random in its times as real ones are: operators with launches on one thread, kernels on two streams."""
    chance, lines, at, free, launch = random.Random(1), [], 1000.0, [0.0, 0.0], 0

    def add(
        cat: str, name: str, start: float, dur: float, *, pid: int = 1, tid: int = 1, args: str = ""
    ) -> None:
        lines.append(
            f'{{"ph":"X","cat":"{cat}","name":"{name}","pid":{pid},"tid":{tid},"ts":{start:.3f},"dur":{dur:.3f},"args":{{{args}}}}}'
        )

    while len(lines) < num_events:
        begin = at
        for _ in range(400):
            outer = at
            at += chance.uniform(0.5, 3)
            for _ in range(chance.randint(1, 3)):
                inner, launch = at, launch + 1
                at += chance.uniform(0.5, 4)
                call, which = chance.uniform(2, 6), int(chance.random() < 0.1)
                add("cuda_runtime", "cudaLaunchKernel", at, call, args=f'"correlation":{launch}')
                at += call
                start, dur = max(free[which], at + chance.uniform(1, 4)), chance.lognormvariate(1.5, 1)
                place = f'"correlation":{launch},"device":0,"stream":{7 + 13 * which}'
                kernel = f"void at::native::kernel_{chance.randrange(120)}<float, 4>(int, float*)"
                add("kernel", kernel, start, dur, pid=0, tid=7 + 13 * which, args=place)
                free[which] = start + dur + 0.8
                at += chance.uniform(0.2, 1)
                add("cpu_op", f"aten::op_{chance.randrange(60)}", inner, at - inner)
                at += chance.uniform(0.1, 1)
            add("cpu_op", f"aten::op_{chance.randrange(60)}", outer, at - outer)
            at += chance.uniform(0.3, 3)
        add("user_annotation", f"ProfilerStep#{len(lines)}", begin, at - begin)
        at += 5
    path.write_text('{"schemaVersion":1,"traceEvents":[\n' + ",\n".join(lines[:num_events]) + "\n]}")
    return path


def measure(browser: Any, case: Case) -> dict[str, float]:
    """Open a page once: seconds until it is drawn, and frames per second of each movement."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    start = time.perf_counter()
    page.goto(case.path.as_uri() + case.fragment)
    page.locator(case.drawing).wait_for()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    measurement = {"open s": time.perf_counter() - start}
    for movement in case.movements:
        times = page.evaluate(MOVE, [case.drawing, movement, FRAMES])[WARM_UP:]
        measurement[f"{movement} fps"] = 1000 / statistics.fmean(times)
        measurement[f"{movement} p95 ms"] = sorted(times)[int(len(times) * 0.95)]
    context.close()
    return measurement


def spread(values: list[float]) -> str:
    """Median and its 95 % interval; below six rounds, which cannot give one, the whole range."""
    estimate = estimate_quantile(np.array(values), 0.5, 0.95)
    low, high = estimate.low_s or min(values), estimate.high_s or max(values)
    return f"{estimate.value_s:.3g} ({low:.3g}–{high:.3g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=sorted(AREAS), action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--events", default="200000,1000000")
    parser.add_argument(
        "--traces", type=Path, default=Path(os.environ.get("PYROMETER_TRACES", "../shared/traces"))
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for area in options.only or sorted(AREAS):
            print(area)
            for case in AREAS[area](Path(name), options):
                rounds = [measure(browser, case) for _ in range(options.rounds)]
                figures = {key: spread([one[key] for one in rounds]) for key in rounds[0]}
                print("    " + "  ".join(f"{key} {figure}" for key, figure in figures.items()), flush=True)
        browser.close()
    print(f"load average now {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()

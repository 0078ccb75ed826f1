"""What compiling costs: one ratio, what an undecided one leaves open, and compile time nested without the script."""

from __future__ import annotations

import msgspec
import pytest
from document_fixtures import document_of

from pyrometer.compiler.costs.record import CacheSummary, Compilation, CompileCost, PhaseTree
from pyrometer.compiler.inspection.record import GraphRuntime, Runtime
from pyrometer.compiler.recompiles.record import GuardSummary
from pyrometer.report import html
from pyrometer.report.chapters.compile import REST
from pyrometer.report.documents import CompileDocument
from pyrometer.report.facts import compile as of_compile
from pyrometer.report.payloads.compile_cost import compile_content
from pyrometer.report.payloads.compile_phases import phases_content

COST = CompileCost(
    first_call_s=7.8, steady_s=0.947, eager_steady_s=1.03, compile_s=4.0, outcome="undecided", ratio=0.802,
    phases_s={"Dynamo tracing": 1.0, "guards": 3.0},
    tree=PhaseTree(
        names=["0/0", "entire_frame_compile", "<build_guards>"], phases=["Dynamo tracing", "guards"],
        parent=[-1, 0, 1], name=[0, 1, 2], phase=[-1, 0, 1], calls=[1, 1, 3], own_s=[0.0, 1.0, 3.0],
    ),
)  # fmt: skip


def document(cost: CompileCost = COST, runtime: Runtime | None = None) -> CompileDocument:
    compiled = Compilation(compile_id="0/0", function="forward", file="model.py", line=9, outcome="compiled")
    return document_of(CompileDocument, target="model.py:work", graphs=1, frames=1, skipped_frames=0, breaks=[], recompiles=[], limit_reached=False,
        guards=GuardSummary(), cost=cost, cache=CacheSummary(), artifact_bytes=0, compilations=[compiled], runtime=runtime,
    )  # fmt: skip


def facts(compile_document: CompileDocument, slug: str) -> dict[str, tuple[str, str]]:
    (section,) = (one for one in of_compile.sections(compile_document.report) if one.slug == slug)
    return {fact.label: (fact.value, fact.note) for fact in section.facts}


def test_without_an_interval_no_ratio_is_told_and_nothing_of_what_is_repaid():
    told = facts(document(), "compiling")
    assert told["has paid"][0] == told["paired with eager"][0] == "not known yet"
    assert of_compile.headline(document().report).endswith("· against eager undecided")


@pytest.mark.parametrize(
    ("outcome", "paid"),
    [("undecided", "not known yet"), ("slower", "never, as measured"), ("same", "never, as measured")],
)
def test_the_ratio_of_the_headline_stands_among_the_costs_with_its_measurement(outcome, paid):
    cost = msgspec.structs.replace(COST, outcome=outcome, ratio=1.04, ci_low=1.01, ci_high=1.07)
    told = facts(document(cost), "compiling")
    assert told["has paid"][0] == paid
    ratio, measurement = told["paired with eager"]
    assert "1.04×" in ratio
    assert "1.04×" in of_compile.headline(document(cost).report)
    assert "medians of each" in measurement


@pytest.mark.parametrize(("step_s", "warns"), [(0.0898, True), (0.0019, False)])
def test_profiled_steps_unlike_the_timed_ones_are_called_so(step_s, warns):
    graph = GraphRuntime(compile_id="0/0", calls=6, total_s=0.4, calls_per_step=1.0, mean_s=0.07, share=1.0)
    runtime = Runtime(num_steps=6, profiled_step_s=step_s, graphs=[graph])
    steps = facts(document(msgspec.structs.replace(COST, steady_s=0.00178), runtime), "runtime")["steps"]
    assert ("may mislead" in steps[1]) is warns


def test_of_several_recordings_the_median_is_told_to_be_one():
    graph = GraphRuntime(compile_id="0/0", calls=6, total_s=0.4, calls_per_step=1.0, mean_s=0.07, share=1.0)
    runtime = Runtime(num_steps=6, profiled_step_s=0.0019, num_recordings=3, graphs=[graph])
    steps = facts(document(msgspec.structs.replace(COST, steady_s=0.00178), runtime), "runtime")["steps"]
    assert steps[1] == "under the profiler, of 1.90 ms each; the median of 3 recordings"


def test_the_smallest_phases_are_one_part_in_every_drawing():
    phases_s = {f"phase {number}": 10.0 - number for number in range(10)}
    tree = PhaseTree(
        names=["0/0", "a step"], phases=list(phases_s), parent=[-1, *[0] * 10], name=[0, *[1] * 10],
        phase=[-1, *range(10)], calls=[1] * 11, own_s=[0.0, *phases_s.values()],
    )  # fmt: skip
    compiled = document(msgspec.structs.replace(COST, phases_s=phases_s, tree=tree))
    bars, nested = compile_content(compiled.report), phases_content(compiled.report)
    assert bars.phases == [*list(phases_s)[:8], REST]
    assert bars.totals_s[-1] == pytest.approx(1.0 + 2.0)
    assert len(set(bars.slots)) == len(bars.slots)
    slots = dict(zip(nested.kinds, nested.slots, strict=True))
    assert [kind for kind in nested.kinds if slots[kind] == nested.rest] == ["phase 8", "phase 9"]
    assert slots["compilation"] not in {slots[name] for name in phases_s}
    assert REST in html.page(compiled)


def test_compile_time_is_nested_on_paper_too():
    page = html.page(document())
    figure = page[page.index("<figcaption>Inside the compiler</figcaption>") :].partition("</figure>")[0]
    assert "data-static" in page[: page.index("<figcaption>Inside the compiler")].rpartition("<figure")[2]
    assert figure.count("<rect") == 2  # what one step takes whole is drawn as that step
    assert "&lt;build_guards&gt;: 3.00 s" in figure
    assert "3 calls (guards)" in figure

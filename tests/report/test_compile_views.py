"""What people see of a compilation: the answer, each break with its rewrite, figures; untrusted text stays text."""

from __future__ import annotations

import base64
import io
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from document_fixtures import document_of
from markdown_it import MarkdownIt
from rich.console import Console

from pyrometer.advice import Advice
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.matrix.cell import OutputError
from pyrometer.compiler.advice.levers import mark_dynamic
from pyrometer.compiler.advice.record import RewriteTrial
from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.costs.record import (
    CacheEvent,
    CacheSummary,
    Compilation,
    CompileCost,
    GeneratedCode,
    PassEffect,
)
from pyrometer.compiler.fusion.record import Folding, FusedGroup, MemoryPlan, NotFused
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.inspection.record import Evaluation, GraphRuntime, ModeResult, Runtime, SilentEager
from pyrometer.compiler.recompiles.record import (
    ChangedInput,
    FrameGuards,
    GuardSummary,
    LimitReached,
    Recompile,
    RecompileCause,
    StrictGuard,
)
from pyrometer.compiler.report import CompileReport
from pyrometer.place import Place
from pyrometer.record import from_dict, to_dict
from pyrometer.report import html, markdown, terminal
from pyrometer.report.documents import CompileDocument
from pyrometer.report.inline import script

SNAPSHOTS = Path(__file__).parent / "snapshots"
CANARY = "</script><img src=x onerror=alert(1)>"


def report(text: str = "", **changes: Any) -> CompileReport:
    """Everything that a report can hold; `text` is put into all that comes from the user's program."""
    place = Place(file=f"project/train.py{text}", line=30, function=f"main{text}", source=f"model(x){text}")
    compile_report = CompileReport(
        graphs=5,
        frames=3,
        skipped_frames=1,
        breaks=[
            Break(
                id="gb0170",
                reason=f"Data-dependent branching{text}",
                explanation=f"The graph would depend on a value.{text}",
                file=f"project/model.py{text}",
                line=41,
                function=f"forward{text}",
                source=f"if scores.max() > 1:{text}",
                user_stack=[place, Place(file="project/model.py", line=41, function="forward")],
                count=2,
                compile_ids=["0/0", "0/1"],
                lost_ops=7,
                advice=[
                    Advice(
                        slug="choose-with-torch-where",
                        title=f"Choose with torch.where{text}",
                        why=f"Both sides are cheap.{text}",
                        replaces=f"if scores.max() > 1:\n    scores = scores / 2{text}",
                        rewrite=f"scores = torch.where(scores.max() > 1, scores / 2, scores){text}",
                        fix_class="exact",
                    ),
                    Advice(
                        slug="keep-the-scalar-in-the-graph",
                        title="Keep the scalar in the graph",
                        why="Nothing has to be rewritten.",
                        rewrite="torch._dynamo.config.capture_scalar_outputs = True",
                        fix_class="semantic",
                    ),
                ],
            ),
            Break(
                id=None,
                reason="graph break in loop",
                file="project/model.py",
                line=44,
                chained=True,
                chained_to="project/model.py:41",
                skips_frame=True,
            ),
        ],
        skips=[
            SkippedFrame(
                compile_id="2/0",
                function=f"decode{text}",
                file="project/model.py",
                line=60,
                reason=f"a loop{text}",
                kind="break",
            )
        ],
        recompiles=[
            Recompile(
                compile_id="0/1",
                function=f"forward{text}",
                file="project/model.py",
                line=38,
                causes=[
                    RecompileCause(
                        entry="0/0", guard=f"size mismatch{text}", all_failing=["a", "b"], kind="size"
                    )
                ],
                changed_inputs=[
                    ChangedInput(
                        source="L['x'].size()[0]",
                        name=f"x, dimension 0{text}",
                        kind="size",
                        before=["4"],
                        after="7",
                        became_dynamic=True,
                    )
                ],
                compile_s=1.5,
            )
        ],
        limit_reached=True,
        limits=[
            LimitReached(
                function=f"step{text}",
                file="project/train.py",
                line=12,
                limit=8,
                reason=f"recompile limit{text}",
            )
        ],
        guards=GuardSummary(
            by_type={"TENSOR_MATCH": 13, f"EQUALS_MATCH{text}": 2},
            total=15,
            eval_s=8e-6,
            per_compilation=[FrameGuards(compile_id="0/0", total=15, by_type={"TENSOR_MATCH": 13})],
            strict=[
                StrictGuard(
                    guard=f"scale == 1.0{text}",
                    type="EQUALS_MATCH",
                    source=f"self.scale{text}",
                    why=f"tied to 1.0{text}",
                    compile_id="0/0",
                )
            ],
        ),
        cost=CompileCost(
            first_call_s=5.2,
            steady_s=0.001,
            eager_steady_s=0.002,
            outcome="faster",
            ratio=0.5,
            ci_low=0.45,
            ci_high=0.55,
            compile_s=5.0,
            break_even_steps=5200,
            phases_s={"C++ compile": 3.0, f"Dynamo{text}": 1.5, "guards": 0.5},
            dispatch_s=4e-5,
            observing_s=0.05,
        ),
        passes=[
            PassEffect(
                compile_id="0/0",
                subsystem="joint_graph",
                name=f"fold{text}",
                seconds=0.01,
                nodes_before=20,
                nodes_after=18,
            )
        ],
        fusions=[
            FusedGroup(
                compile_id="0/0",
                name="op0_op1",
                kind="fused",
                ops=["aten.add.Tensor", f"aten.relu.default{text}"],
                num_nodes=2,
                read_bytes=4096,
                written_bytes=2048,
                saved_bytes=4096,
                places=[f"project/model.py:39{text}"],
            )
        ],
        not_fused=[
            NotFused(
                compile_id="0/0",
                first="op1",
                second="op2",
                first_ops=[f"aten.sum{text}"],
                reason=f"no shared data{text}",
                shared_bytes=64,
            )
        ],
        not_fused_reasons={f"no shared data{text}": 11},
        memory_plans=[MemoryPlan(compile_id="0/0", allocated=14, reused=5, peak_bytes=5120)],
        folded=[
            Folding(compile_id="0/0", name=f"constant_fold{text}", count=2, nodes=["full"], kind="constant")
        ],
        cache=CacheSummary(
            hits=1,
            misses=1,
            state="mixed",
            events=[
                CacheEvent(
                    compile_id="0/0", cache="fx_graph", outcome="miss", differing=[f"input 0 size{text}"]
                )
            ],
        ),
        code=[
            GeneratedCode(
                compile_id="0/0",
                path=f"/tmp/cache/k3/ck3.py{text}",
                num_bytes=9000,
                num_lines=200,
                kernels=["cpp_fused_add_relu_0"],
                extern_calls={"extern_kernels.mm": 2},
                vectorized=True,
            )
        ],
        artifact_bytes=9000,
        error=OutputError(
            max_abs=1e-6, max_rel=2e-6, cosine=1.0, num_values=10, tolerance=1e-4, within_tolerance=True
        ),
        compilations=[
            Compilation(
                compile_id="0/0",
                function=f"forward{text}",
                file=f"project/model.py{text}",
                line=38,
                outcome="compiled",
                total_s=3.5,
                num_ops=12,
                num_guards=15,
            )
        ],
        graph_records=[
            Graph(
                compile_id="0/0",
                stage="dynamo",
                num_ops=1,
                nodes=[
                    GraphNode(name="x", op="input", dtype="f32", shape=["4"]),
                    GraphNode(
                        name="relu",
                        op="call",
                        target=f"torch.relu{text}",
                        inputs=["x"],
                        dtype="f32",
                        shape=["4"],
                        source=f"y = relu(x){text}",
                    ),
                    GraphNode(name="output", op="output", inputs=["relu"]),
                ],
            )
        ],
        runtime=Runtime(
            num_steps=10,
            lookup_s=4e-5,
            graphs=[
                GraphRuntime(
                    compile_id="0/0",
                    calls=10,
                    total_s=0.01,
                    calls_per_step=1.0,
                    mean_s=0.001,
                    share=1.0,
                    compile_s=3.5,
                    pays=True,
                )
            ],
            silent_eager=[
                SilentEager(
                    function=f"step{text}",
                    file=f"project/train.py{text}",
                    line=12,
                    calls=4,
                    failing=[f"x == 8{text}"],
                )
            ],
        ),
        evaluation=Evaluation(
            modes=[
                ModeResult(mode="eager", latency_s=0.002, outcome="reference"),
                ModeResult(
                    mode="default",
                    latency_s=0.001,
                    outcome="faster",
                    ratio=0.5,
                    ci_low=0.45,
                    ci_high=0.55,
                    cosine=1.0,
                    max_rel=2e-6,
                ),
                ModeResult(mode="max-autotune", failure=f"it failed{text}"),
            ],
            best="default",
            sentence=f"default is faster{text}",
        ),
        unavailable=[f"something is not told{text}"],
        notes=[f"a note{text}"],
    )
    return msgspec.structs.replace(compile_report, **changes)


def document(compile_report: CompileReport, target: str = "model.py:workload") -> CompileDocument:
    fields = {name: getattr(compile_report, name) for name in compile_report.__struct_fields__}
    return document_of(
        CompileDocument,
        target=target,
        tool_version="0.1.0",
        run_id="r7k2m9",
        created="2026-11-21T09:30:00Z",
        command=["pyrometer", "compile", target],
        over_budget=["2 graph breaks, 0 allowed"],
        **fields,
    )


def shown(compile_document: CompileDocument, width: int = 100) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    console = Console(file=stream, width=width, color_system=None, legacy_windows=False)
    console.print(terminal.render_document("compile", to_dict(compile_document)))
    stream.flush()
    return stream.buffer.getvalue().decode()


def matches_snapshot(name: str, text: str) -> None:
    path = SNAPSHOTS / name
    plain = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if os.environ.get("PYROMETER_UPDATE_SNAPSHOTS"):
        path.write_text(plain, encoding="utf-8")
    assert plain == path.read_text(encoding="utf-8")


def test_terminal_and_markdown_are_as_stored():
    matches_snapshot("compile.txt", shown(document(report())))
    matches_snapshot("compile.md", markdown.render_document("compile", to_dict(document(report()))))


def test_the_answer_names_the_first_cause_and_not_what_follows_from_it():
    first = shown(document(report()), width=300).splitlines()[0]
    assert "1 break: model.py:41" in first
    assert "2.00× faster (1.82–2.22) than eager" in first
    assert "recompile limit reached: 1 function left to eager in silence" in first


def test_the_rewrite_stands_below_its_break():
    text = shown(document(report()))
    assert (
        text.index("project/model.py:41 forward")
        < text.index("torch.where(scores.max()")
        < text.index("Recompiles")
    )


def test_no_break_and_nothing_compiled_say_so():
    clean = report(breaks=[], skips=[], recompiles=[], limit_reached=False, graphs=1, runtime=None)
    assert shown(document(clean), width=300).startswith("1 graph, no break · no recompilation · 2.00× faster")
    nothing = report(
        breaks=[],
        skips=[],
        recompiles=[],
        limit_reached=False,
        graphs=0,
        frames=0,
        compilations=[],
        runtime=None,
    )
    assert shown(document(nothing)).startswith("nothing was compiled")


def test_what_was_not_shown_to_be_faster_is_not_called_so():
    cost = msgspec.structs.replace(report().cost, outcome="undecided", ratio=1.23, ci_low=0.9, ci_high=1.4)
    assert "against eager undecided: 1.23× its time (0.900–1.40)" in shown(
        document(report(cost=cost)), width=300
    )


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(map(len, shown(document(report()), width=width).splitlines())) <= width


def test_text_of_the_program_stays_text():
    compile_document = document(report(CANARY), target=CANARY)
    page = html.page(compile_document)
    assert "<img src=x" not in page
    for drawn in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", page):
        assert "<img" not in base64.b64decode(drawn).decode()
    assert page.count("</script>") == page.count("<script")
    assert page.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;") > 20
    text = markdown.render_document("compile", to_dict(compile_document))
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = [child for token in reader.parse(text) for child in (token, *(token.children or []))]
    assert not {token.type for token in tokens} & {"html_block", "html_inline", "image", "link_open"}


def test_a_fence_in_the_source_does_not_end_the_block():
    compile_report = report(
        breaks=[
            msgspec.structs.replace(
                report().breaks[0],
                advice=[
                    Advice(
                        slug="t",
                        title="t",
                        why="w",
                        rewrite="x = '''\n```\n<img src=x>\n'''",
                        fix_class="exact",
                    )
                ],
            )
        ]
    )
    tokens = MarkdownIt("commonmark", {"html": True}).parse(
        markdown.render_document("compile", to_dict(document(compile_report)))
    )
    assert not {token.type for token in tokens} & {"html_block", "html_inline"}


def test_the_page_holds_the_document_and_loads_nothing():
    compile_document = document(report())
    page = html.page(compile_document)
    for said in (
        "Graph breaks, and what to write instead",
        "Recompilations",
        "Fused groups and buffers",
        "Guards",
        "Generated code",
        "Over the budget",
    ):
        assert said in page
    ours = script(re.findall(r'data-widget="(\w+)"', page)).text  # names the XML namespace of SVG
    assert "http:" not in page.replace(ours, "").replace("http-equiv", "")
    assert from_dict(CompileDocument, to_dict(compile_document)) == compile_document
    assert html.page(compile_document) == page


def test_long_tables_say_how_much_is_left_out():
    many = [msgspec.structs.replace(report().recompiles[0], compile_id=f"0/{n}") for n in range(1, 30)]
    text = shown(document(report(recompiles=many)), width=160)
    assert "0/5" in text
    assert "0/8" not in text
    assert "and 22 more" in text
    assert "and 5 more" in html.page(document(report(recompiles=many)))


def test_ranks_that_differ_come_first():
    compile_document = msgspec.structs.replace(
        document(report()), divergence=["rank 1 compiled 2 graphs, rank 0 compiled 1"]
    )
    text = shown(compile_document, width=200)
    assert text.startswith("ranks decided differently · 5 graphs")
    assert "rank 1 compiled 2 graphs" in text


def test_what_failed_is_not_said_to_run_eagerly():
    skips = [msgspec.structs.replace(report().skips[0], raised=True), *report().skips]
    text = shown(document(report(skips=skips, skipped_frames=2)), width=200)
    assert "1 of them run eagerly · 1 failed" in text
    assert "it failed" in text


def test_rewrites_that_were_tried_say_what_came_of_it():
    tried = RewriteTrial(
        rewrites=[Advice(slug="s", title="select with torch.where", replaces="a", rewrite="b", fix_class="exact", where=Place(file="model.py", line=41))],
        breaks_before=2,
        breaks_after=0,
        error=report().error,
        verdict=Verdict(
            outcome="faster", ratio=0.8, ci_low=0.79, ci_high=0.81, confidence=0.99, margin=0.05, smallest_effect=0.02,
            num_blocks=20, elapsed_s=1.0,
        ),
    )  # fmt: skip
    text = shown(document(report(trial=tried)), width=200)
    assert "breaks 2 → 0" in text
    assert "1.25× faster (1.23–1.27)" in text
    assert "within tolerance" in text
    failed = shown(
        document(
            report(trial=msgspec.structs.replace(tried, breaks_after=None, verdict=None, failure="it raised"))
        )
    )
    assert "it raised" in failed


def test_what_is_not_in_the_report_is_said_in_the_headline():
    silent = report(
        graphs=0, frames=0, breaks=[], skips=[], recompiles=[], limit_reached=False, compilations=[]
    )
    assert shown(document(silent)).startswith("1 function left to eager in silence")
    earlier = shown(document(report(incomplete=["model.py:12 forward was compiled before"])), width=300)
    assert "what was compiled before is not in this report" in earlier.splitlines()[0]
    assert "model.py:12 forward was compiled before" in earlier


def test_levers_say_what_to_try_and_why():
    text = shown(document(report(levers=[mark_dynamic()])), width=200)
    assert "say which sizes vary" in text
    assert "torch._dynamo.mark_dynamic(x, 0)" in text


def test_the_overview_shows_three_breaks_and_the_cost():
    plain = report()
    many = [msgspec.structs.replace(plain.breaks[0], line=line) for line in range(5)]
    page = html.page(document(report(breaks=many)))
    assert '<a href="#/compile">All breaks</a> <span class="badge">5</span>' in page
    assert page.count('<article class="finding" data-page="compile">') == 2
    assert '<section data-page="overview compile" aria-labelledby="compiling">' in page

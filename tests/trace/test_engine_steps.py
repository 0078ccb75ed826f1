"""Steps of inference engines: found by their annotations, with prefill and decode apart."""

from __future__ import annotations

import pytest

from pyrometer.report.facts.trace import sections
from pyrometer.trace.analysis.engine_steps import engine_steps
from pyrometer.trace.naming.engine_names import read_step
from pyrometer.trace.reporting.rank_report import report_rank

VLLM = "execute_7_context_2(sq6sk10sqsq20sqsk32)_generation_3(sq3sk90sqsq3sqsk90)"


def serve(builder, names, *, each=100.0, kernels=1):
    """Steps one after another with a pause between them, in each an operator and its kernels."""
    for i, name in enumerate(names):
        start = 1000.0 * i
        builder.annotate(name, start, each)
        builder.op("aten::mm", start + 5, 50)
        for k in range(kernels):
            builder.launch("gemm", start + 10 + 8 * k, start + 20 + 20 * k, 10)
    return builder


@pytest.mark.parametrize(
    ("name", "kind", "tokens"),
    [
        ("execute_context_2(14721)_generation_0(0)", "prefill", (14721, 0)),
        ("execute_context_0(0)_generation_64(64)", "decode", (0, 64)),
        (VLLM, "mixed", (6, 3)),
        ("step[EXTEND bs=2 toks=107]", "prefill", (107, 0)),
        ("step[DECODE bs=32]", "decode", (0, 32)),
        (
            "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]",
            "mixed",
            (5, 1),
        ),
        ("prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3]", "prefill", (17408, 0)),
        ("decode[bs=117/128 tok=117 d=117]", "decode", (0, 117)),
        ("execute_model", "unknown", (0, 0)),
    ],
)
def test_what_an_annotation_says(name, kind, tokens):
    step = read_step(name)
    assert (step.kind, (step.prefill.queries, step.decode.queries)) == (kind, tokens)


@pytest.mark.parametrize(
    "name",
    ["execute", "prefill", "decode", "step 3", "execute_model_runner", "my execute_context_1(2)", "step[3]"],
)
def test_annotations_of_others_are_no_steps_of_an_engine(name, builder):
    assert read_step(name) is None
    assert engine_steps(serve(builder, [name] * 4).read()) == []


def test_pairs_are_those_that_a_causal_mask_leaves():
    """Two prompts, one of 4 tokens after 2 cached ones, one of 2 after 2; three that generate with 30 tokens each."""
    step = read_step(VLLM)
    assert step.prefill.pairs == (3 + 4 + 5 + 6) + (3 + 4)
    assert step.decode.pairs == 90


def test_prefill_and_decode_are_told_apart(builder):
    names = ["execute_context_1(500)_generation_0(0)", *["execute_context_0(0)_generation_8(8)"] * 3]
    trace = serve(builder, names, kernels=2).read()
    assert trace.steps["source"].to_list() == ["engine"] * 4
    assert trace.steps["name"].to_list()[:2] == ["0 prefill of 1 (500 tokens)", "1 decode of 8"]
    prefill, decode = engine_steps(trace)
    assert (prefill.kind, prefill.num_steps, prefill.tokens, prefill.total_ns) == ("prefill", 1, 500, 100_000)
    assert (decode.kind, decode.num_steps, decode.requests, decode.tokens) == ("decode", 3, 24, 24)
    assert decode.tokens_per_s == 24 / 300e-6
    assert (decode.device_ns, decode.num_work) == (60_000, 6)
    (chapter,) = [one for one in sections(report_rank(trace)) if one.slug == "serving"]
    assert [row[:4] for row in chapter.table.rows] == [
        ("prefill", "1", "1", "500"),
        ("decode", "3", "24", "24"),
    ]


def test_the_annotation_that_says_more_stands_for_the_one_around_it(builder):
    for i in range(2):
        builder.annotate("execute_model", 1000.0 * i, 300)
        builder.annotate(f"step[DECODE bs={i + 4}]", 1000.0 * i + 20, 200)
        builder.op("aten::mm", 1000.0 * i + 30, 50)
    trace = builder.read()
    assert trace.steps["end_ns"].to_list() == [300_000, 1_300_000]
    (decode,) = engine_steps(trace)
    assert decode.requests == 9


def test_more_steps_of_the_profiler_go_before(builder):
    for i in range(3):
        builder.annotate(f"ProfilerStep#{i}", 1000.0 * i, 900)
    serve(builder, ["step[DECODE bs=1]"])
    assert builder.read().steps["source"].to_list() == ["profiler"] * 3


def test_one_mark_of_the_profiler_around_all_steps_does_not(builder):
    builder.annotate("ProfilerStep#0", 0, 5000)
    trace = serve(builder, ["step[DECODE bs=1]"] * 3).read()
    assert trace.steps["source"].to_list() == ["engine"] * 3


def test_a_trace_without_an_engine_has_no_such_chapter(builder):
    builder.op("aten::mm", 0, 10)
    report = report_rank(builder.read())
    assert report.serving == []
    assert not [one for one in sections(report) if one.slug == "serving"]

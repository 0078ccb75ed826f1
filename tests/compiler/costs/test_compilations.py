"""Each compilation by itself: what became of it, how long it took, what it was of."""

from __future__ import annotations

import pytest
import torch

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.costs.compilations import read_compilations
from pyrometer.compiler.costs.cost import read_cost

FRAME, BACKWARD = "entire_frame_compile", "entire_backward_compile"


def approx(expected):
    return pytest.approx(expected, abs=2e-6)


def add_one(x):
    return x + 1


def nothing(x):
    return x


def with_break(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


def break_in_loop(x):
    for _ in range(2):
        x = x + 1
        torch._dynamo.graph_break()
    return x


def scaled(x, factor):
    return x * factor


def compilations(function, *calls, backend="eager", raises=None, **options):
    with collect() as collector:
        compiled = torch.compile(function, backend=backend, **options)
        for call in calls:
            if raises is None:
                compiled(*call)
            else:
                with pytest.raises(raises):
                    compiled(*call)
    log = collector.log()
    found = read_compilations(log)
    assert sum(compilation.total_s for compilation in found) == pytest.approx(read_cost(log).compile_s)
    return found


X = torch.ones(3)


def test_a_function_that_compiles():
    (compilation,) = compilations(add_one, (X,))
    assert (compilation.compile_id, compilation.function, compilation.outcome, compilation.reason) == (
        "0/0",
        "add_one",
        "compiled",
        "",
    )
    assert compilation.file == __file__
    assert compilation.line == add_one.__code__.co_firstlineno
    assert (compilation.num_ops, compilation.attempts, compilation.is_resume, compilation.backward_s) == (
        1,
        1,
        False,
        None,
    )
    assert compilation.num_guards > 0
    assert 0 < compilation.phases_s["guards"] < compilation.total_s
    assert (compilation.backend, compilation.mode, compilation.cache) == ("", "", "unknown")


def test_a_function_without_tensor_operations_is_empty():
    (compilation,) = compilations(nothing, (X,))
    assert (compilation.outcome, compilation.num_ops) == ("empty", None)


def test_the_rest_behind_a_break_bears_the_name_of_its_function():
    first, rest = compilations(with_break, (X,))
    assert (first.function, first.attempts, first.is_resume) == ("with_break", 2, False)
    assert (rest.function, rest.attempts, rest.is_resume) == ("with_break", 1, True)
    assert rest.started_s >= first.total_s


def test_a_function_that_is_given_up_was_skipped():
    found = compilations(break_in_loop, (X,))[0]
    assert (found.outcome, found.num_ops) == ("skipped", None)
    assert found.reason == "Unsupported: Call to `torch._dynamo.graph_break()`"


def test_a_break_that_the_user_forbids_fails():
    (compilation,) = compilations(with_break, (X,), fullgraph=True, raises=torch._dynamo.exc.Unsupported)
    assert (compilation.outcome, compilation.reason) == (
        "failed",
        "Unsupported: Call to `torch._dynamo.graph_break()`",
    )


def test_a_backend_that_breaks_down_fails():
    def broken(graph, inputs):
        raise RuntimeError("out of order")

    (compilation,) = compilations(
        add_one, (X,), backend=broken, raises=torch._dynamo.exc.BackendCompilerFailed
    )
    assert compilation.outcome == "failed"
    assert compilation.reason == "BackendCompilerFailed: backend='broken' raised:"


def test_errors_that_are_suppressed_are_skips():
    def broken(graph, inputs):
        raise RuntimeError("out of order")

    with torch._dynamo.config.patch(suppress_errors=True):
        (compilation,) = compilations(add_one, (X,), backend=broken)
    assert compilation.outcome == "skipped"


def test_at_the_limit_a_compilation_is_skipped_and_named_after_its_frame():
    with torch._dynamo.config.patch(recompile_limit=1, specialize_int=True):
        first, refused = compilations(scaled, (X, 2), (X, 3), (X, 4))
    assert first.outcome == "compiled"
    assert (refused.compile_id, refused.outcome, refused.function) == ("0/1", "skipped", "scaled")
    assert refused.line == scaled.__code__.co_firstlineno
    assert "limit" in refused.reason


def test_after_a_reset_ids_are_told_apart():
    with collect() as collector:
        for _ in range(2):
            torch.compile(add_one, backend="eager")(X)
            torch._dynamo.reset()
    log = collector.log()
    found = read_compilations(log)
    assert [compilation.compile_id for compilation in found] == ["0/0", "r1:0/0"]
    assert sum(compilation.total_s for compilation in found) == pytest.approx(read_cost(log).compile_s)
    assert 0 <= read_cost(log).observing_s < read_cost(log).compile_s


def test_a_graph_of_the_autograd_engine_is_a_compilation():
    model = torch.nn.Linear(2, 2)

    def step(x):
        model(x).sum().backward()

    with torch._dynamo.config.patch(compiled_autograd=True):
        found = compilations(step, (torch.ones(1, 2),))
    captured = next(compilation for compilation in found if compilation.compile_id == "!0")
    assert (captured.function, captured.outcome) == ("compiled autograd", "compiled")
    assert captured.total_s > 0


def test_the_backward_counts_to_its_forward(build):
    build.span(FRAME, 0, 4).span(BACKWARD, 10, 13).metrics(0, 4, co_name="f").metrics(
        10, 13, kind="bwd_compilation_metrics"
    )
    (compilation,) = read_compilations(build.log())
    assert (compilation.total_s, compilation.backward_s) == (approx(7), approx(3))
    assert compilation.phases_s == approx({"Dynamo tracing": 4, "AOTAutograd": 3})


def test_a_compilation_inside_another_counts_for_itself(build):
    build.begin(FRAME, 0).begin(FRAME, 2, compile_id="1/0").span("build_guards", 3, 4, compile_id="1/0")
    build.end(FRAME, 5, compile_id="1/0").end(FRAME, 6)
    outer, inner = read_compilations(build.log())
    assert (outer.total_s, outer.phases_s) == (approx(3), approx({"Dynamo tracing": 3}))
    assert (inner.total_s, inner.phases_s) == (approx(3), approx({"Dynamo tracing": 2, "guards": 1}))
    assert inner.started_s == approx(2)


def test_what_bears_no_id_inside_a_compilation_is_part_of_it(build):
    build.begin(FRAME, 0).span("build_guards", 1, 3, compile_id="None").end(FRAME, 4)
    (compilation,) = read_compilations(build.log())
    assert compilation.phases_s == approx({"Dynamo tracing": 2, "guards": 2})


def test_a_backward_does_not_count_what_is_compiled_inside_of_it(build):
    build.begin(BACKWARD, 0).begin("backend_compile", 1).span(FRAME, 2, 5, compile_id="1/0")
    build.end("backend_compile", 6).end(BACKWARD, 7)
    outer, inner = read_compilations(build.log())
    assert (outer.backward_s, outer.total_s) == (approx(4), approx(4))
    assert (inner.backward_s, inner.total_s) == (None, approx(3))


def test_what_has_not_ended_is_unfinished(build):
    build.begin(FRAME, 0).begin("bytecode_tracing", 1)
    build.add("dynamo_start", {"stack": [{"name": "f", "filename": "a.py", "line": 7}]}, at_s=1)
    (compilation,) = read_compilations(build.log())
    assert (compilation.outcome, compilation.function, compilation.file, compilation.line) == (
        "unfinished",
        "f",
        "a.py",
        7,
    )


def test_a_backward_whose_forward_was_not_seen_is_compiled(build):
    build.metrics(0, 2, kind="bwd_compilation_metrics", compile_id="3/0")
    (compilation,) = read_compilations(build.log())
    assert (compilation.outcome, compilation.total_s, compilation.backward_s) == (
        "compiled",
        approx(2),
        approx(2),
    )


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({}, "default"),
        ({"triton.cudagraphs": True}, "reduce-overhead"),
        ({"max_autotune": True}, "max-autotune-no-cudagraphs"),
        ({"max_autotune": True, "triton.cudagraphs": True}, "max-autotune"),
    ],
)
def test_the_mode_is_told_by_the_settings_in_the_key(build, settings, mode):
    every = {"triton.cudagraphs": False, "max_autotune": False, **settings}
    components = [f"[abc] inductor_config[{name}]: {value}" for name, value in every.items()]
    build.artifact("fx_graph_cache_miss", {"key": "f1", "components": components})
    (compilation,) = read_compilations(build.log())
    assert (compilation.mode, compilation.backend, compilation.cache) == (mode, "inductor", "miss")


def test_looks_that_went_differently_are_mixed(build):
    build.artifact("aotautograd_cache_miss", {}).artifact("fx_graph_cache_hit", {})
    assert read_compilations(build.log())[0].cache == "mixed"


def test_the_rank_is_told(build):
    from dataclasses import replace

    from pyrometer.compiler.log import CompileLog

    build.add("dynamo_start", {}, compile_id=CompileId(0, None, 0, 0))
    assert read_compilations(CompileLog((replace(build.entries[0], rank=3),)))[0].rank == 3

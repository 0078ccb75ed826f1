"""Real logs of a cold and a warm compilation with Inductor, against what torch itself counted in the same runs.

`recorded` are the files beside this one. `live` records them anew, so that it fails where torch no longer says what is
read here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pyrometer.compiler.collecting.files import read_logs
from pyrometer.compiler.costs.caches import read_cache
from pyrometer.compiler.costs.code import artifact_bytes, read_code, read_origins
from pyrometer.compiler.costs.compilations import read_compilations
from pyrometer.compiler.costs.cost import read_cost
from pyrometer.compiler.costs.passes import read_passes
from pyrometer.compiler.log import CompileLog

RECORDER = Path(__file__).with_name("record_logs.py")

LIVE = pytest.param("live", marks=[pytest.mark.slow, pytest.mark.exhaustive])
"""For another torch: what the slow tests of inspections and levers compile is live, too."""

NEAR_S = 1e-5
"""Torch rounds what it tells to microseconds, event by event."""


class Run(NamedTuple):
    log: CompileLog
    told: dict[str, Any]
    file: CompileLog | None
    """The same run as TORCH_TRACE wrote it down; recorded for `live` only."""


def record(name: str, folder: Path, read) -> Run:
    """Record in a process of its own: what torch keeps between compilations would tell of other tests too."""
    out, traces = folder / f"{name}.json.gz", folder / f"{name}_traces"
    subprocess.run(
        [sys.executable, str(RECORDER), str(out)],
        check=True,
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "TORCH_TRACE": str(traces)},
    )
    (file,) = read_logs(traces)
    return Run(*read(out), file)


@pytest.fixture(scope="module", params=["recorded", LIVE])
def runs(request, tmp_path_factory, recorded, read_log) -> dict[str, Run]:
    if request.param == "recorded":
        return {name: Run(*recorded(name), None) for name in ("cold", "warm")}
    folder = tmp_path_factory.mktemp("compiled")
    return {name: record(name, folder, read_log) for name in ("cold", "warm")}


@pytest.fixture(params=["cold", "warm"])
def run(request, runs) -> Run:
    return runs[request.param]


def metrics(run: Run, key: str) -> float:
    kinds = ("compilation_metrics", "bwd_compilation_metrics")
    return sum(entry.metadata.get(key) or 0 for entry in run.log.of(*kinds)) / 1e6


def test_compile_time_is_what_torch_counts(run):
    assert read_cost(run.log).compile_s == pytest.approx(
        run.told["calculate_time_spent"]["total_wall_time"], abs=NEAR_S
    )


def test_phases_add_up_to_it(run):
    cost = read_cost(run.log)
    assert sum(cost.phases_s.values()) == pytest.approx(cost.compile_s, abs=1e-9)
    assert sum(compilation.total_s for compilation in read_compilations(run.log)) == pytest.approx(
        cost.compile_s, abs=1e-9
    )


def test_phases_are_what_torch_counts_where_it_counts_the_same(run):
    phases, torchs = read_cost(run.log).phases_s, run.told["compilation_time_metrics"]
    for phase, key, timer in [
        ("pre-grad passes", "pre_grad_pass_time_us", "_recursive_pre_grad_passes"),
        ("joint-graph passes", "joint_graph_pass_time_us", "_recursive_joint_graph_passes"),
        ("post-grad passes", "post_grad_pass_time_us", "_recursive_post_grad_passes"),
        ("waiting for compile threads", "triton_compile_time_us", "async_compile.wait"),
        ("garbage collection", "gc_time_us", "gc"),
        ("guards", None, "build_guards"),
    ]:
        assert phases.get(phase, 0.0) == pytest.approx(torchs.get(timer, 0.0), abs=NEAR_S)
        if key is not None:
            assert phases.get(phase, 0.0) == pytest.approx(metrics(run, key), abs=NEAR_S)


def test_compile_threads_and_callers_together_ran_the_cpp_compiler_as_long_as_torch_counts(run):
    cost = read_cost(run.log)
    ran_s = cost.phases_s.get("C++/Triton compile", 0.0) + cost.background_s.get("C++/Triton compile", 0.0)
    assert ran_s == pytest.approx(run.told["compilation_time_metrics"].get("compile_file", 0.0), abs=NEAR_S)


def test_names_that_nobody_knows_are_rare(run):
    cost = read_cost(run.log)
    assert cost.phases_s.get("other", 0.0) < 0.02 * cost.compile_s


def test_the_metrics_alone_tell_the_same_time(run):
    alone = CompileLog(tuple(entry for entry in run.log.entries if entry.kind != "chromium_event"))
    cost = read_cost(alone)
    assert cost.compile_s == pytest.approx(read_cost(run.log).compile_s, abs=NEAR_S)
    assert sum(cost.phases_s.values()) == pytest.approx(cost.compile_s, abs=1e-9)
    for phase in ("joint-graph passes", "post-grad passes", "waiting for compile threads"):
        assert cost.phases_s.get(phase, 0.0) == pytest.approx(
            read_cost(run.log).phases_s.get(phase, 0.0), abs=NEAR_S
        )


def test_recording_took_a_part_of_it(run):
    cost = read_cost(run.log)
    assert 0 < cost.observing_s < cost.compile_s


@pytest.mark.parametrize("runs", [LIVE], indirect=True)
def test_the_file_of_the_same_run_tells_the_same(run):
    assert read_cost(run.file).compile_s == pytest.approx(read_cost(run.log).compile_s, abs=NEAR_S)
    assert read_cost(run.file).phases_s == pytest.approx(read_cost(run.log).phases_s, abs=NEAR_S)
    assert [event.key for event in read_cache(run.file).events] == [
        event.key for event in read_cache(run.log).events
    ]
    assert len(read_passes(run.file)) == len(read_passes(run.log))
    assert [(code.kernels, code.num_bytes) for code in read_code(run.file)] == [
        (code.kernels, code.num_bytes) for code in read_code(run.log)
    ]
    assert [origin.kernel for origin in read_origins(run.file)] == [
        origin.kernel for origin in read_origins(run.log)
    ]
    for mine, files in zip(read_compilations(run.log), read_compilations(run.file), strict=True):
        assert (mine.compile_id, mine.outcome, mine.function, mine.cache) == (
            files.compile_id,
            files.outcome,
            files.function,
            files.cache,
        )
        assert mine.total_s == pytest.approx(files.total_s, abs=NEAR_S)


def test_two_compilations_the_first_with_a_backward_of_its_own(runs):
    first, again = read_compilations(runs["cold"].log)
    assert [first.compile_id, again.compile_id] == ["0/0", "0/1"]
    assert {first.function, again.function} == {"forward"}
    assert {first.outcome, again.outcome} == {"compiled"}
    assert (first.backend, first.mode, first.cache, first.num_ops) == ("inductor", "default", "miss", 5)
    assert 0 < first.backward_s < first.total_s
    assert again.backward_s is None  # with open sizes torch compiles it along with the forward
    assert again.started_s > first.total_s - first.backward_s
    assert first.num_guards > 0


def test_a_warm_cache_spares_lowering_and_compiling(runs):
    cold, warm = (read_cost(runs[name].log) for name in ("cold", "warm"))
    assert warm.compile_s < cold.compile_s
    spared = {
        "Inductor lowering",
        "scheduling and fusion",
        "code generation",
        "joint-graph passes",
        "post-grad passes",
    }
    assert spared <= set(cold.phases_s)
    assert spared.isdisjoint(warm.phases_s)
    assert {compilation.cache for compilation in read_compilations(runs["warm"].log)} == {"hit"}


def test_looks_are_those_that_torch_counts(run):
    counted, summary = run.told["counters"], read_cache(run.log)
    of_cache = {
        cache: {
            outcome: sum((event.cache, event.outcome) == (cache, outcome) for event in summary.events)
            for outcome in ("hit", "miss")
        }
        for cache in ("fx_graph", "aot_autograd")
    }
    assert of_cache["fx_graph"] == {
        outcome: counted.get(f"inductor.fxgraph_cache_{outcome}", 0) for outcome in ("hit", "miss")
    }
    assert of_cache["aot_autograd"] == {
        outcome: counted.get(f"aot_autograd.autograd_cache_{outcome}", 0) for outcome in ("hit", "miss")
    }


def test_the_second_process_finds_what_the_first_has_left(runs):
    cold, warm = (read_cache(runs[name].log) for name in ("cold", "warm"))
    assert (cold.state, warm.state) == ("cold", "warm")
    assert {event.key for event in warm.events} == {event.key for event in cold.events}
    assert all(event.saved_s is not None for event in warm.events)


def test_the_second_size_missed_for_its_size(runs):
    events = [event for event in read_cache(runs["cold"].log).events if event.cache == "fx_graph"]
    forward = next(event for event in events if event.compile_id == "0/1")
    assert forward.differs_from == events[0].key
    assert "graph" in forward.differing
    assert any(words.startswith("input ") and " size ([4, 16] → [s" in words for words in forward.differing)
    assert not any(words.startswith("config") for words in forward.differing)


def test_passes_ran_on_every_graph_that_was_compiled_and_on_none_from_the_cache(runs):
    cold = read_passes(runs["cold"].log)
    assert {effect.compile_id for effect in cold} == {"0/0", "0/1"}
    assert {effect.subsystem for effect in cold} == {
        "pre_grad_passes",
        "joint_graph_passes",
        "post_grad_passes",
    }
    assert all(effect.seconds >= 0 for effect in cold)
    sums = {f"{effect.subsystem}.{effect.name}": 0.0 for effect in cold}
    for effect in cold:
        sums[f"{effect.subsystem}.{effect.name}"] += effect.seconds
    torchs = runs["cold"].told["compilation_time_metrics"]
    assert sums == pytest.approx({name: torchs[f"pass.{name}"] for name in sums}, abs=NEAR_S)
    assert read_passes(runs["warm"].log) == []


def test_code_of_each_direction_and_size(run):
    codes = read_code(run.log)
    assert [(code.compile_id, code.is_backward) for code in codes].count(("0/0", True)) == 1
    assert sorted((code.compile_id, code.is_backward) for code in codes) == [
        ("0/0", False),
        ("0/0", True),
        ("0/1", False),
        ("0/1", True),
    ]
    for code in codes:
        assert code.kernels
        assert all(name.startswith("cpp_fused_") for name in code.kernels)
        assert code.vectorized is not None
        assert code.allocations > 0
        products = code.extern_calls.get("extern_kernels.mm", 0) + code.extern_calls.get(
            "extern_kernels.addmm", 0
        )
        assert products == (4 if code.is_backward else 2)
    assert artifact_bytes(codes) == sum(code.num_bytes for code in codes)


def test_kernels_come_from_lines_of_the_model(run):
    origins, codes = read_origins(run.log), read_code(run.log)
    assert {origin.kernel for origin in origins if origin.kernel.startswith("cpp_")} == {
        name for code in codes for name in code.kernels
    }
    places = {place for origin in origins for place in origin.places}
    assert places
    assert all(place.rpartition(":")[0].endswith("record_logs.py") for place in places)
    assert any(origin.ops for origin in origins)

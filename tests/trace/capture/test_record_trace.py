"""A workload's trace: its steps, phases and modules, and nothing changed afterwards."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise

import polars as pl
import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from pyrometer.errors import InputError, PyrometerError, UserProgramError
from pyrometer.trace.capture.record import CAPTURE_OPTIONS, CaptureOptions
from pyrometer.trace.capture.workload import record_trace
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference


def test_every_step_is_there_with_its_phases_and_modules(training, count):
    trace = record_trace(training(), steps=3)
    assert trace.steps.height == 3
    assert trace.steps["source"].unique().to_list() == ["profiler"]
    for name in ("phase:data", "phase:h2d", "phase:forward", "phase:backward", "phase:optimizer"):
        assert count(trace, name) == 3
    for name in ("module:Net", "module:encoder", "module:encoder.0", "module:head", "module:loss"):
        assert count(trace, name) == 3


def test_micro_batches_have_their_phases_each(training, count):
    trace = record_trace(training(accumulate=3), steps=2)
    assert count(trace, "phase:backward") == 6
    assert count(trace, "phase:optimizer") == 2
    assert trace.capture.notes == []


def test_phases_cover_their_work_and_do_not_overlap(training):
    rank = record_trace(training(), steps=2).rank()
    phases = rank.events.filter(pl.col("name").str.starts_with("phase:"))
    times = phases.select("start_ns", "end_ns").rows()
    assert all(end <= start for (_, end), (start, _) in pairwise(times))
    names = dict(zip(rank.events["event"].to_list(), rank.events["name"].to_list(), strict=True))
    at = rank.places.phase.tolist()
    where = {
        (names[event], names.get(phase))
        for event, phase, kind in zip(rank.events["event"], at, rank.events["kind"], strict=True)
        if kind == "cpu_op"
    }
    assert ("aten::linear", "phase:forward") in where
    assert ("aten::linear", "phase:backward") not in where
    assert ("AddmmBackward0", "phase:forward") not in where


def test_a_module_without_a_path_is_called_by_its_class(net, count):
    trace = record_trace(Inference(net, torch.randn(2, 6)), steps=2)
    assert count(trace, "module:Net") == 2
    assert count(trace, "phase:forward") == 2


def test_a_function_is_one_phase(count):
    trace = record_trace(Call(lambda: torch.ones(3).sum()), steps=2, warmup=0)
    assert count(trace, "phase:call") == 2
    assert count(trace, "aten::ones") == 2


def test_the_capture_says_what_it_cost(training, tmp_path):
    path = tmp_path / "trace.json.gz"
    trace = record_trace(training(), steps=4, path=path)
    capture = trace.capture
    assert (capture.source, capture.num_steps, capture.num_untraced) == ("workload", 4, 8)
    assert capture.path == str(path)
    assert capture.file_bytes == path.stat().st_size < capture.raw_bytes
    assert capture.raw_bytes / 3 < capture.predicted_bytes < capture.raw_bytes * 3
    assert capture.num_events == trace.ranks[0].info.num_events
    assert capture.overhead_low <= capture.overhead_ratio <= capture.overhead_high
    with gzip.open(path) as file:
        assert len(json.load(file)["traceEvents"]) == capture.num_events


def test_without_a_path_no_file_stays(training, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert record_trace(training(), steps=1).capture.path is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "holds"),
    [
        ("record_shapes", lambda one: one.tables["ops"]["input_dims"].drop_nulls().len()),
        ("with_stack", lambda one: one.tables["python"].height),
        ("profile_memory", lambda one: one.tables["memory"].height),
        (
            "with_modules",
            lambda one: one.tables["events"].filter(pl.col("name").str.starts_with("module:")).height,
        ),
    ],
)
def test_each_option_adds_what_it_says(training, option, holds):
    none = dict.fromkeys(CaptureOptions.__struct_fields__, False)
    without = record_trace(training(), steps=1, warmup=0, options=CaptureOptions(**none))
    assert not holds(without.ranks[0])
    chosen = CaptureOptions(**none | {option: True})
    assert holds(record_trace(training(), steps=1, warmup=0, options=chosen).ranks[0])


def test_every_option_has_its_price():
    assert [option.name for option in CAPTURE_OPTIONS] == list(CaptureOptions.__struct_fields__)


def test_the_users_objects_are_as_before(net, training):
    before = {name: value.clone() for name, value in net.state_dict().items()}
    work = training()
    record_trace(work, steps=2)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(parameter.grad is None for parameter in net.parameters())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())
    assert not torch.autograd.profiler._is_profiler_enabled
    call = nn.Module.__call__.__code__
    record_trace(work, steps=1)
    assert nn.Module.__call__.__code__ is call


@pytest.mark.parametrize("bad", [1, 4, 5, 9, 12])
def test_a_step_that_raises_leaves_nothing_behind(bad, tmp_path):
    class Fragile(nn.Module):
        calls = 0

        def forward(self, x):
            Fragile.calls += 1
            if Fragile.calls == bad:
                raise ValueError("the sensor is gone")
            return x + 1

    code = nn.Module.__call__.__code__
    with pytest.raises(UserProgramError, match="the sensor is gone"):
        record_trace(Inference(Fragile(), torch.ones(2)), steps=3, path=tmp_path / "t.json")
    assert nn.Module.__call__.__code__ is code
    assert not torch.autograd.profiler._is_profiler_enabled
    assert list(tmp_path.iterdir()) == []
    assert record_trace(Call(torch.ones, 2), steps=1).steps.height == 1


def test_a_phase_that_comes_and_goes_is_said():
    calls = []
    work = Call(lambda: calls.append(1))
    opened = work.open

    def open_odd():
        context = opened()

        class Context:
            def __enter__(self):
                session = context.__enter__()
                plain = session.phased_step

                def phased_step(mark):
                    plain(mark)
                    if len(calls) % 2:
                        mark("logging")

                session.phased_step = phased_step
                return session

            def __exit__(self, *error):
                return context.__exit__(*error)

        return Context()

    work.open = open_odd
    assert any("phases changed" in note for note in record_trace(work, steps=4).capture.notes)


def test_a_large_file_is_announced_before(training, monkeypatch):
    monkeypatch.setattr("pyrometer.trace.capture.workload.MANY_BYTES", 1000)
    heard = []
    trace = record_trace(training(), steps=1, on_note=heard.append)
    assert "will take about" in heard[0]
    assert trace.capture.notes == heard


def test_names_that_the_exporter_would_break_are_made_harmless(count):
    model = nn.Sequential()
    model.add_module('the "best" café', nn.ReLU())
    trace = record_trace(Inference(model, torch.ones(2)), steps=1)
    assert count(trace, "module:the 'best' caf?") == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 0}, "steps: got 0"),
        ({"steps": 1.5}, "steps: got 1.5"),
        ({"warmup": -1}, "warmup: got -1"),
        ({"path": "nowhere/trace.json"}, "there is no folder"),
        ({"path": "trace.txt"}, ".json or .json.gz"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(changes, said):
    def run():
        raise AssertionError

    with pytest.raises(InputError, match=said.replace(".", r"\.")):
        record_trace(Call(run), **changes)


def test_a_profiler_that_runs_already_is_left_alone(training):
    with profile(activities=[ProfilerActivity.CPU]), pytest.raises(InputError, match="only one"):
        record_trace(training())


class TestCompiled:
    def test_compiled_code_is_not_compiled_anew_by_the_capture(self, net, count):
        compiled = torch.compile(net, backend="eager")
        x = torch.randn(2, 6)
        with torch.inference_mode():
            net.eval()(x)
        trace = record_trace(Inference(compiled, x), steps=2)
        assert count(trace, "module:Net") == 2
        assert count(trace, "module:head") == 0
        assert sum("compiled code makes no calls" in note for note in trace.capture.notes) == 1
        assert not any("compiled something anew" in note for note in trace.capture.notes)
        assert not trace.events["name"].str.contains("dynamo_timed").any()
        assert trace.events["name"].str.contains("Torch-Compiled Region").sum() == 2

    def test_a_method_that_is_compiled_inside_is_not_compiled_anew(self, net):
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            @torch.compile(backend="eager", fullgraph=True)
            def work(self, x):
                return self.net(x)

            def forward(self, x):
                return self.work(x)

        trace = record_trace(Inference(Outer(), torch.randn(2, 6)), steps=2)
        assert not trace.events["name"].str.contains("dynamo_timed").any()
        assert trace.capture.notes == []

    def test_compilation_in_a_traced_step_is_a_span(self):
        def compile_anew():
            torch._dynamo.reset()
            return torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))

        trace = record_trace(Call(compile_anew), steps=1, warmup=0)
        spans = trace.events.filter(pl.col("name").str.contains("_compile.compile_inner"))
        assert spans.height >= 1
        assert spans["step"].to_list()[0] == 0
        assert any("compiled something anew" in note for note in trace.capture.notes)

    def test_scripted_modules_are_seen_from_outside(self):
        with pytest.warns(DeprecationWarning, match="script"):
            scripted = torch.jit.script(nn.Linear(3, 3))
        trace = record_trace(Inference(scripted, torch.ones(2, 3)), steps=2)
        assert trace.steps.height == 2


def test_the_fast_path_of_a_transformer_layer_is_still_taken(count):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    trace = record_trace(Inference(layer, torch.randn(2, 5, 8)), steps=2)
    assert count(trace, "aten::_transformer_encoder_layer_fwd") == 2
    assert count(trace, "module:TransformerEncoderLayer") == 2


def test_a_step_that_would_take_far_too_long_to_read_is_left(training) -> None:
    work = training()
    with pytest.raises(PyrometerError, match=r"a single step takes .* of trace"):
        record_trace(work, steps=2, warmup=0, most_bytes=100)
    assert record_trace(work, steps=2, warmup=0, most_bytes=10_000).capture is not None

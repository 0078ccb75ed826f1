"""Recording the compiler changes nothing for the program, and misses nothing that torch says."""

from __future__ import annotations

import logging

import pytest
import torch

from pyrometer.compiler.collecting import collector as home
from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.private import trace_log

READ = {
    "dynamo_start",
    "dynamo_output_graph",
    "dynamo_graph_break_reason",
    "dynamo_cpp_guards_str",
    "recompile_reasons",
    "create_symbol",
    "compilation_metrics",
    "chromium_event",
    "aot_inference_graph",
}
"""Kinds that readers of this room rely on, without Inductor."""


def doubled_if_positive(x):
    y = x + 1
    if y.sum() > 0:
        y = y * 2
    return y


def loggers():
    return {
        name: (one.level, one.propagate, one.disabled, list(one.handlers))
        for name, one in logging.root.manager.loggerDict.items()
        if isinstance(one, logging.Logger) and name.startswith("torch")
    }


def kinds(log):
    return {entry.kind for entry in log.entries}


def test_everything_that_readers_rely_on_is_told_by_this_torch():
    with collect() as collector:
        compiled = torch.compile(doubled_if_positive, backend="aot_eager")
        for size in (3, 4):
            compiled(torch.ones(size))
    log = collector.log()
    assert kinds(log) >= READ
    assert [compile_id.text for compile_id in log.compile_ids()] == ["0/0", "1/0", "0/1", "1/1"]
    assert (log.num_faults, log.unavailable) == (0, ())
    assert log.torch_version == torch.__version__


def test_nothing_is_recorded_once_nothing_is_compiled_any_more():
    compiled = torch.compile(doubled_if_positive, backend="eager")
    compiled(torch.ones(3))
    with collect() as collector:
        for _ in range(20):
            compiled(torch.ones(3))
    assert collector.log().entries == ()


def test_stacks_name_files_also_those_that_torch_named_before_the_recording_began():
    torch.compile(doubled_if_positive, backend="eager")(torch.ones(3))
    with collect() as collector:
        torch.compile(doubled_if_positive, backend="eager")(torch.ones(2, 2))
    stack = next(collector.log().of("dynamo_start")).metadata["stack"]
    assert stack[-1]["filename"] == __file__
    assert stack[-1]["name"] == "doubled_if_positive"


def test_loggers_are_as_before_also_after_an_error():
    torch.compile(doubled_if_positive, backend="eager")(
        torch.ones(3)
    )  # torch removes a handler of its own at first
    before = loggers()

    def fail_while_recording():
        with collect():
            torch.compile(doubled_if_positive, backend="eager")(torch.ones(2, 2))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_while_recording()
    assert loggers() == before


def test_a_fault_of_ours_does_not_end_the_compilation(monkeypatch):
    def broken(self, record):
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(home._Handler, "_take", broken)
    with collect() as collector:
        found = torch.compile(doubled_if_positive, backend="eager")(torch.ones(3))
    assert found.tolist() == [4, 4, 4]
    assert collector.log().num_faults > 10


def test_records_of_a_shape_that_we_do_not_know_are_counted_and_the_rest_is_kept():
    with collect() as collector:
        torch.compile(doubled_if_positive, backend="eager")(torch.ones(3))
        logging.getLogger(trace_log.LOGGER).debug(
            "", extra={"metadata": {"new": 1, "attempt": "x"}, "payload": 5}
        )
        logging.getLogger(trace_log.LOGGER).debug("without metadata")
    log = collector.log()
    assert log.num_faults == 2
    assert "compilation_metrics" in kinds(log)


def test_two_recordings_at_once_see_the_same():
    with collect() as outer, collect() as inner:
        torch.compile(doubled_if_positive, backend="eager")(torch.ones(3))
    assert len(outer.log().entries) == len(inner.log().entries) > 10


def test_compilations_behind_a_reset_are_told_apart():
    with collect() as collector:
        for _ in range(3):
            torch.compile(doubled_if_positive, backend="eager")(torch.ones(3))
            torch._dynamo.reset()
    assert [compile_id.text for compile_id in collector.log().compile_ids()] == [
        *("0/0", "1/0"),
        *("r1:0/0", "r1:1/0"),
        *("r2:0/0", "r2:1/0"),
    ]


def test_a_probe_can_add_to_the_compilation_that_is_under_way():
    with collect() as collector:

        def backend(graph, _):
            collector.emit("seen", {"nodes": len(graph.graph.nodes)})
            return graph.forward

        torch.compile(doubled_if_positive, backend=backend)(torch.ones(3))
        collector.emit("after", {})
    first = next(collector.log().of("pyrometer.seen"))
    assert (first.compile_id.text, first.metadata) == ("0/0", {"nodes": 5})
    assert next(collector.log().of("pyrometer.after")).compile_id is None


def test_counters_are_told_as_their_growth():
    torch.compile(doubled_if_positive, backend="eager")(torch.ones(3))
    with collect() as collector:
        torch.compile(doubled_if_positive, backend="eager")(torch.ones(2, 2))
    torch.compile(doubled_if_positive, backend="eager")(torch.ones(2, 2, 2))
    assert collector.log().counters["stats.unique_graphs"] == 2

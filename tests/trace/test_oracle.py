"""Agreement to the nanosecond with an oracle that shares no code with the library, on real and on random traces."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.record import to_dict
from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.analysis.idle import idle
from pyrometer.trace.reading.read import read_trace


def compare(path: Path, oracle: ModuleType) -> None:
    """Every figure of breakdown and idle time against the oracle's."""
    trace = read_trace(path).ranks[0]
    ours = breakdown(trace)
    windows = [(step.start_ns, step.end_ns) for step in ours.by_step]
    truth = oracle.measure(oracle.load(path), windows, trace.steps.select("start_ns", "end_ns").rows())
    assert (ours.start_ns, ours.end_ns) == (truth.start, truth.end)
    assert [to_dict(step.parts) for step in ours.by_step] == truth.windows[:-1]
    assert to_dict(ours.parts) == truth.windows[-1]
    assert ours.device_busy_ns == truth.device_busy
    assert ours.kernel_busy_ns == truth.kernel_busy
    assert ours.kernel_sum_ns == truth.kernel_sum
    assert ours.communication_ns == truth.communication
    assert ours.overlapped_communication_ns == truth.overlapped
    gaps = idle(trace)
    if gaps.of == "device":
        assert gaps.idle_ns == truth.device_idle
        assert gaps.attributed_ns + gaps.profiler_ns == truth.inner_idle


def test_real_traces_agree_to_the_nanosecond(real_trace: Path, oracle: ModuleType) -> None:
    compare(real_trace, oracle)


@given(data=st.data())
def test_random_traces_agree_to_the_nanosecond(
    data: st.DataObject, oracle: ModuleType, generated: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.json"
    path.write_text(data.draw(generated.traces()), encoding="utf-8")
    compare(path, oracle)


def test_the_oracle_reads_decimals_from_the_text(oracle: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,'
        ' "ts": 1669783687464181.123, "dur": 0.001}]}',
        encoding="utf-8",
    )
    (event,) = oracle.load(path)
    assert (event.start, event.end) == (1669783687464181123, 1669783687464181124)
    assert read_trace(path).ranks[0].events.select("start_ns", "end_ns").row(0) == (event.start, event.end)

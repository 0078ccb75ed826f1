"""The graph explains the record: replayed unchanged it is the record, and slack is exactly what may be lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.analysis.what_if import replayed_span
from pyrometer.trace.dependencies.changes import Scales, changed, unchanged
from pyrometer.trace.dependencies.graph import Graph, dependencies
from pyrometer.trace.dependencies.path import path_pieces, path_walk
from pyrometer.trace.dependencies.replay import recorded, replay, slack, span_of
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import RankTrace


def check_record(trace: RankTrace) -> Graph:
    """The unchanged replay, the order of nodes, slack, and the partition of the span by the critical path."""
    graph = dependencies(trace)
    real = ~graph.is_pass
    for durations in (recorded(graph), changed(graph, unchanged(trace.events.height))):
        ends = replay(graph, durations)
        assert ends[real].tolist() == (graph.time + graph.dur)[real].tolist()
        assert span_of(graph, ends) == trace.activity.span_ns or len(graph) == 1
    assert (graph.source[:, 1:] < np.arange(1, len(graph))).all()
    assert (graph.lag >= 0).all()
    assert (slack(graph)[real] >= 0).all()
    pieces = path_pieces(trace)
    edges = [trace.activity.start_ns, *pieces["end_ns"].to_list()]
    assert pieces["start_ns"].to_list() == edges[:-1]
    assert edges[-1] == trace.activity.end_ns
    return graph


def test_real_traces_are_reproduced_to_the_nanosecond(real_trace: Path) -> None:
    check_record(read_trace(real_trace).ranks[0])


@given(data=st.data())
def test_random_traces_are_reproduced_to_the_nanosecond(
    data: st.DataObject, generated: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "random_graph.json"
    path.write_text(data.draw(generated.traces()), encoding="utf-8")
    trace = read_trace(path).ranks[0]
    graph = check_record(trace)
    if len(graph) == 1:
        return
    # Slack: so much longer costs nothing, and on the critical path each nanosecond costs one.
    left, on_path = slack(graph), set(path_walk(trace).node.tolist())
    for node in data.draw(st.lists(st.integers(1, len(graph) - 1), max_size=3)):
        for more, cost in ((left[node], 0), (1, 1)):
            dur = graph.dur.copy()
            dur[node] += more
            span = span_of(graph, replay(graph, replace(recorded(graph), dur=dur)))
            assert span <= trace.activity.span_ns + cost
            if cost and node in on_path:
                assert span == trace.activity.span_ns + 1
    # Nothing that takes less time makes the run longer.
    share = np.array(
        data.draw(
            st.lists(
                st.sampled_from([0.0, 0.3, 0.5, 1.0]),
                min_size=trace.events.height,
                max_size=trace.events.height,
            )
        )
    )
    assert (
        replayed_span(graph, Scales(share, gap=data.draw(st.sampled_from([0.0, 1.0]))))
        <= trace.activity.span_ns
    )

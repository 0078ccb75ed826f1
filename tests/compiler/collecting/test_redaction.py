"""A report that is handed on holds no source text and no folder."""

from __future__ import annotations

import pytest
import torch

from pyrometer.advice import Advice
from pyrometer.compiler.breaks.record import Break
from pyrometer.compiler.collecting.redaction import redacted
from pyrometer.compiler.inspection.observe import observe_compile
from pyrometer.place import Place
from pyrometer.record import to_json


def halved_where_positive(x):
    secret_scale = 0.5
    y = x + 1
    if y.sum() > 0:
        y = y * secret_scale
    return y


def test_nothing_of_a_real_report_names_a_folder_or_shows_a_line():
    with observe_compile() as seen:
        compiled = torch.compile(halved_where_positive, backend="aot_eager")
        for size in (3, 4):
            compiled(torch.ones(size))
    whole, kept = seen.report(), redacted(seen.report())
    text = to_json(kept).decode()
    assert "y.sum() > 0" in to_json(whole).decode()
    assert "y.sum()" not in text
    assert "/" not in "".join(place.file for graph_break in kept.breaks for place in graph_break.user_stack)
    assert __file__.rpartition("/")[0] not in text
    assert (kept.graphs, [graph_break.id for graph_break in kept.breaks]) == (
        whole.graphs,
        [graph_break.id for graph_break in whole.breaks],
    )
    assert [len(graph.nodes) for graph in kept.graph_records] == [
        len(graph.nodes) for graph in whole.graph_records
    ]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("compiled in /home/me/project/model.py:41 forward", "compiled in model.py:41 forward"),
        ("C:\\Users\\me\\model.py:3", "model.py:3"),
        ("0/1: L['x'] size 3 and/or 4 a / b", "0/1: L['x'] size 3 and/or 4 a / b"),
    ],
)
def test_folders_are_taken_out_of_sentences(told, kept):
    graph_break = redacted(
        Break(
            id=None,
            reason=told,
            file="/a/b.py",
            line=1,
            advice=[Advice(slug="t", title="t", why="w", replaces="x", rewrite="y", fix_class="exact")],
            user_stack=[Place(file="/a/b.py", line=1, source="z")],
        )
    )
    assert graph_break.reason == kept
    assert (graph_break.file, graph_break.advice[0].replaces, graph_break.user_stack[0].source) == (
        "b.py",
        None,
        None,
    )

"""The JSON that verbs print: readable while it is short, and small where it is long."""

from __future__ import annotations

import json

import pytest
import torch
from compiler_fixtures import fresh_dynamo
from torch import nn

from pyrometer.cli.printing import READABLE_BYTES, document_json
from pyrometer.compiler.graphs.record import GraphNode
from pyrometer.compiler.inspection.observe import observe_compile
from pyrometer.record import to_json

__all__ = ["fresh_dynamo"]


def test_short_documents_are_indented_and_long_ones_are_not():
    assert document_json({"a": [1]}).count(b"\n") > 2
    long = document_json({"a": ["x" * 10] * READABLE_BYTES})
    assert b"\n" not in long
    assert len(json.loads(long)["a"]) == READABLE_BYTES


def test_a_node_of_a_graph_holds_only_what_is_known_of_it():
    assert json.loads(to_json(GraphNode(name="add", op="call"))) == {"name": "add", "op": "call"}


@pytest.mark.exhaustive
def test_the_report_of_a_small_model_in_training_is_under_half_a_megabyte():
    layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    with observe_compile() as seen:
        torch.compile(model, backend="aot_eager")(torch.randn(2, 8, 32)).sum().backward()
    report = seen.report()
    assert sum(len(graph.nodes) for graph in report.graph_records) > 150
    assert len(document_json(report)) < 500_000

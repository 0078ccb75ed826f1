"""A page of a large compilation stays small enough to be mailed, and holds all of its document."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import pytest
from document_fixtures import changed, document_of

from pyrometer.compiler.costs.record import CacheSummary, CompileCost, PassEffect
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.recompiles.record import GuardSummary
from pyrometer.compiler.report import CompileReport
from pyrometer.record import from_dict, to_json
from pyrometer.report import html
from pyrometer.report.charts.graphs import MOST_PICTURE_BYTES
from pyrometer.report.documents import CompileDocument
from pyrometer.report.payloads.block import READABLE_BYTES

MOST_BYTES = 2_000_000
STAGES = ("dynamo", "joint", "forward", "backward", "post_grad", "post_grad_backward")


def graph(compile_id: str, stage: str, num_ops: int) -> Graph:
    """A chain whose operations bear what torch writes: long types, places, lines, modules."""
    nodes = [GraphNode(name="x", op="input", role="input", dtype="float32", shape=["18015", "4"])]
    for place in range(num_ops):
        nodes.append(
            GraphNode(
                name=f"convert_element_type_{place}", op="call", target="torch.ops.aten.native_batch_norm_legit.default",
                inputs=[nodes[-1].name, *([nodes[-10].name] if place % 11 == 10 else [])], dtype="float32",
                shape=[str(1 + place % 7), "64", "128", "224"], stride=["1835008", "28672", "224", "1"], device="cuda:0",
                num_bytes=4 * 64 * 28_672, module=f"camera.backbone.stages.{place // 40}.blocks.{place // 8}.norm",
                file="/home/someone/projects/perception/models/backbones/perception.py", line=100 + place % 60,
                source=f"features_{place % 60} = self.normalise(features, eps=1e-{place % 9})", function="forward",
            )
        )  # fmt: skip
    nodes.append(GraphNode(name="output", op="output", inputs=[nodes[-1].name]))
    text = "\n".join(f"%{node.name} : [num_users=1] = call_function[target={node.target}]" for node in nodes)
    return Graph(compile_id=compile_id, stage=stage, nodes=nodes, num_ops=num_ops, text=text)


@pytest.fixture(scope="module")
def large() -> CompileReport:
    """Some 6,000 operations over eight compilations, as models of 10⁷ to 10⁸ parameters have."""
    graphs = [graph(f"{frame}/0", stage, 380 if frame == 0 else 60) for frame in range(8) for stage in STAGES]
    passes = [
        PassEffect(
            compile_id=f"{frame}/0", subsystem="post_grad_passes", name=f"pattern_{number}", seconds=0.001
        )
        for frame in range(8)
        for number in range(250)
    ]
    return CompileReport(
        graphs=8, frames=8, skipped_frames=0, breaks=[], recompiles=[], limit_reached=False, guards=GuardSummary(),
        cost=CompileCost(), cache=CacheSummary(), artifact_bytes=0, graph_records=graphs, passes=passes,
    )  # fmt: skip


def document_in(page: str) -> tuple[dict[str, Any], bool]:
    """The document that a page carries, and whether it is packed."""
    (found,) = re.findall(
        r'<script type="application/json" id="pyrometer-data"( data-encoding="gzip")?>(.*?)</script>',
        page,
        re.DOTALL,
    )
    raw = gzip.decompress(base64.b64decode(found[1])) if found[0] else found[1]
    return json.loads(raw)["document"], bool(found[0])


@pytest.fixture(scope="module")
def document(large) -> CompileDocument:
    fields = {name: getattr(large, name) for name in large.__struct_fields__}
    return document_of(CompileDocument, target="examples/perception.py:workload", **fields)


@pytest.fixture(scope="module")
def page(document) -> str:
    return html.page(document)


@pytest.mark.slow
def test_a_page_of_a_large_compilation_is_below_two_megabytes(document, page):
    held, is_packed = document_in(page)
    assert is_packed
    assert from_dict(CompileDocument, held) == document
    assert len(to_json(document)) > 1.5 * MOST_BYTES, "else this test says nothing"
    assert len(page.encode()) < MOST_BYTES


@pytest.mark.slow
def test_a_check_with_a_large_compilation_is_below_two_megabytes(large, documents):
    page = html.page(changed(documents["training"], compiled=large))
    assert len(page.encode()) < MOST_BYTES


def test_pictures_for_readers_without_the_script_have_a_budget(page):
    pictures = re.findall(r'src="(data:image/svg[^"]*)"', page)
    assert pictures
    assert sum(map(len, pictures)) <= MOST_PICTURE_BYTES
    drawn = base64.b64decode(pictures[0].partition(",")[2]).decode()
    assert "<title>" not in drawn


def test_a_small_document_stays_readable_in_the_page(documents):
    packed = {name: document_in(html.page(one))[1] for name, one in documents.items()}
    assert packed == {name: len(to_json(one)) > READABLE_BYTES for name, one in documents.items()}

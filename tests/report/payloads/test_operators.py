"""The tables that a page lists: from attachments all rows, from a document what it keeps, each told."""

from __future__ import annotations

import json

import msgspec
import pytest
from document_fixtures import changed, document_of

from pyrometer.record import from_json
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import TraceDocument
from pyrometer.report.payloads.operators import OperatorTables, blocks
from pyrometer.trace.difference.compare import diff_traces
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.view.tables import tables_of


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Thirty operators of different names, each with a kernel; the larger its number, the longer."""
    events = []
    for i in range(1, 31):
        host = {"pid": 1, "tid": 1, "ph": "X"}
        at = 1000.0 * i
        events += [
            {**host, "cat": "cpu_op", "name": f"aten::op{i}", "ts": at, "dur": 50, "args": {}},
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 10, "dur": 5, "args": {"correlation": i}},
            {"ph": "X", "cat": "kernel", "name": f"kernel{i}", "pid": 0, "tid": 7, "ts": at + 100, "dur": i, "args": {"correlation": i, "device": 0, "stream": 7}},
        ]  # fmt: skip
    path = tmp_path_factory.mktemp("traces") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return read_trace(str(path)).ranks[0]


@pytest.fixture(scope="module")
def document(trace):
    return document_of(TraceDocument, target="trace.json", ranks=[report_rank(trace)])


def only(found) -> OperatorTables:
    (block,) = found
    assert block.name == "operators/0"
    return from_json(OperatorTables, block.content)


def test_attachments_give_all_rows(document, trace):
    tables = only(blocks(document, Attachments(tables=[tables_of(trace)])))
    assert len(tables.tables.operators.name) == 30
    assert tables.notice is None
    assert tables.tables.gaps.num_listed == 0  # they are the idle page's
    assert tables.notes["kernels"].startswith("30 kernels, 30 different; running for 465 µs")


def test_a_cut_table_says_so(document, trace):
    tables = only(blocks(document, Attachments(tables=[tables_of(trace, max_rows=25)])))
    assert tables.notice == (
        "Of 30 operators, 30 shapes, 30 kernels the largest are listed, and the others summed in the row (other)."
    )


def test_a_document_alone_gives_its_largest_rows(document, trace):
    tables = only(blocks(document, Attachments()))
    whole = tables_of(trace)
    assert tables.notice is not None
    assert tables.notice.startswith("The 20 largest of each are listed")
    for table in ("operators", "kernels", "shapes"):
        kept, full = getattr(tables.tables, table), getattr(whole, table)
        assert kept.name == full.name[:20]
        assert kept.calls == full.calls[:20]
    assert tables.tables.operators.device_self_ns == whole.operators.device_self_ns[:20]
    assert tables.tables.kernels.op == whole.kernels.op[:20]
    assert tables.tables.has_device


def test_one_block_per_rank(document, trace):
    again = msgspec.structs.replace(document.reports[0], rank=3)
    both = changed(document, ranks=[document.reports[0], document.reports[0], again])
    tables = tables_of(trace)
    names = [block.name for block in blocks(both, Attachments(tables=[tables, tables]))]
    assert names == ["operators/0", "operators/3"]


def test_no_tables_without_a_trace_or_beside_a_comparison(document, trace, documents):
    assert all(list(blocks(one, Attachments())) == [] for one in documents.values())
    compared = changed(document, diff=diff_traces(trace, trace))
    assert list(blocks(compared, Attachments(tables=[tables_of(trace)]))) == []

"""Long tables for a page: complete, equal to the analyses, and cut without losing any time."""

from __future__ import annotations

import msgspec
import pytest

from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.kernels import kernels
from pyrometer.trace.analysis.operators import operators
from pyrometer.trace.view.table_record import OTHER, TraceTables
from pyrometer.trace.view.tables import tables_of


@pytest.fixture
def trace(builder):
    """Forty operators, the i-th with a kernel of i µs; the first two of one name."""
    for i in range(1, 41):
        at = 1000.0 * i
        builder.op(f"aten::op{max(i, 2)}", at, 50 + i, **{"Input Dims": [[i, 2]], "Input type": ["float"]})
        builder.launch(f"void kernel{max(i, 2)}<float>(int)", at + 10, at + 100, i, call_us=5)
    return builder.read()


def test_tables_hold_what_the_analyses_find(trace):
    tables = tables_of(trace)
    table = operators(trace)
    assert tables.operators.num_rows == tables.operators.num_listed == table.height == 39
    assert tables.operators.name == table["name"].to_list()
    assert tables.operators.host_self_ns == table["host_self_ns"].to_list()
    assert tables.operators.device_self_ns[0] == 40_000
    assert tables.kernels.name == kernels(trace)["name"].to_list()
    assert tables.kernels.short_name[0] == "kernel40"
    assert tables.kernels.op[0] == "aten::op40"
    assert tables.shapes.shapes[0] == "[[40,2]]"
    assert sum(tables.shapes.time_ns) == sum(range(1, 41)) * 1000
    assert tables.gaps.num_rows == 39
    assert tables.gaps.dur_ns == sorted(tables.gaps.dur_ns, reverse=True)


def test_means_are_of_calls(trace):
    columns = tables_of(trace).operators
    row = columns.name.index("aten::op2")
    assert (columns.calls[row], columns.mean_ns[row], columns.max_ns[row]) == (2, 51_500, 52_000)


@pytest.mark.parametrize("max_rows", [1, 10, 38])
def test_rows_beyond_the_limit_are_summed(trace, max_rows):
    whole, cut = tables_of(trace), tables_of(trace, max_rows=max_rows)
    for name, sums in {
        "operators": ("calls", "host_self_ns", "device_self_ns"),
        "kernels": ("calls", "total_ns"),
        "shapes": ("calls", "time_ns"),
    }.items():
        full, short = getattr(whole, name), getattr(cut, name)
        assert short.num_rows == full.num_rows
        assert short.num_listed == len(short.name) == max_rows + 1
        assert short.name[-1] == OTHER
        for column in sums:
            assert sum(getattr(short, column)) == sum(getattr(full, column))
    assert cut.operators.host_total_ns[-1] is None  # totals overlap
    assert cut.kernels.mean_ns[-1] is None
    assert cut.operators.host_share[-1] == pytest.approx(sum(whole.operators.host_share[max_rows:]), rel=1e-3)


def test_columns_are_equally_long_or_absent(trace):
    for table in (tables_of(trace), tables_of(trace, max_rows=3)):
        for name in ("operators", "shapes", "kernels", "lines", "modules", "copies", "gaps"):
            columns = getattr(table, name)
            lists = [getattr(columns, field) for field in columns.__struct_fields__]
            lengths = {len(one) for one in lists if isinstance(one, list) and one}
            assert lengths <= {columns.num_listed}


def test_a_record_survives_its_file(trace):
    tables = tables_of(trace)
    assert from_json(TraceTables, to_json(tables)) == tables


def test_places_and_modules(builder):
    builder.python("net.py(7): forward", 0, 200)
    builder.annotate("module:layers.0", 5, 100)
    builder.op("aten::mm", 10, 50)
    builder.launch("gemm", 20, 70, 10)
    builder.launch("Memcpy HtoD (Pinned -> Device)", 110, 120, 10, cat="gpu_memcpy", bytes=1000)
    tables = tables_of(builder.read())
    assert tables.lines.where == ["net.py:7 forward"]
    assert tables.lines.top_ops == ["aten::mm"]
    assert tables.modules.module == ["layers.0"]
    assert tables.modules.device_total_ns == [10_000]
    assert tables.kernels.where == ["net.py:7 forward"]
    assert (tables.copies.kind, tables.copies.total_bytes) == (["H2D pinned"], [1000])
    assert tables.copies.bytes_per_s == [pytest.approx(1e8)]


def test_names_of_any_length_fit(builder):
    builder.op("x" * 5000, 0, 10)
    builder.op("", 20, 10)
    columns = tables_of(builder.read()).operators
    assert max(map(len, columns.name)) <= 400


def test_nothing_gives_nothing(builder):
    builder.annotate("ProfilerStep#0", 0, 10)
    found = msgspec.to_builtins(tables_of(builder.read()))
    tables = {name: one["num_listed"] for name, one in found.items() if isinstance(one, dict)}
    assert tables.pop("gaps") == 1  # all of it: no operator ran
    assert set(tables.values()) == {0}


def test_real_traces_are_small_tables(real_trace):
    from pyrometer.trace.reading.read import read_trace

    trace = read_trace(str(real_trace)).ranks[0]
    tables = tables_of(trace)
    assert sum(tables.operators.host_self_ns) == operators(trace)["host_self_ns"].sum()
    assert len(to_json(tables)) < 3_000_000

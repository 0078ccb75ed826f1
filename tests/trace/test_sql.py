"""A trace answers queries over documented views, and refuses everything else in one line."""

from __future__ import annotations

import pytest

from pyrometer.errors import InputError
from pyrometer.trace import schema
from pyrometer.trace.sql import VIEWS, trace_sql


@pytest.fixture
def trace(new_builder, tmp_path):
    builder = new_builder(tmp_path)
    for i in range(2):
        at = i * 100.0
        builder.annotate(f"ProfilerStep#{i}", at, 100)
        builder.op("aten::mm", at + 10, 30, **{"Input Dims": [[2, 3], [3, 4]]})
        builder.launch("gemm", at + 20, at + 40, 25, grid=[1, 2, 3])
        builder.launch("Memcpy HtoD", at + 60, at + 70, 5, cat="gpu_memcpy", bytes=1024)
    return builder.read_all()


def test_kernels_are_summed_by_name(trace):
    answer = trace_sql(trace, "select name, count(*) as calls, sum(dur_ns) as ns from kernels group by name")
    assert answer.rows() == [("gemm", 2, 50_000)]


def test_views_join_by_event_and_step(trace):
    query = """
        select s.name, o.input_dims, l.delay_ns
        from launches l join steps s on l.step = s.step join ops o on l.op = o.event
        where l.kind = 'kernel' order by l.start_ns
    """
    rows = trace_sql(trace, query).rows()
    assert [(name, dims.replace(" ", "").replace("\n", ""), delay) for name, dims, delay in rows] == [
        ("ProfilerStep#0", "[[2,3],[3,4]]", 20_000),
        ("ProfilerStep#1", "[[2,3],[3,4]]", 20_000),
    ]


def test_comments_common_tables_and_capitals_are_fine(trace):
    query = "-- how much was copied\nWITH c AS (SELECT bytes FROM Copies) SELECT SUM(bytes) AS total FROM c"
    assert trace_sql(trace, query.replace("Copies", "copies"))["total"].to_list() == [2048]


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_has_the_columns_that_it_documents(trace, name):
    answer = trace_sql(trace, f"select * from {name}")
    assert answer.columns == list(VIEWS[name].columns)


@pytest.mark.parametrize("name", VIEWS)
def test_an_empty_trace_has_all_views(builder, name):
    assert trace_sql(builder.read(), f"select * from {name}").columns == list(VIEWS[name].columns)


def test_every_table_of_a_trace_can_be_queried():
    assert set(schema.TABLES) <= set(VIEWS)


def test_all_ranks_answer_together(new_builder, tmp_path):
    from pyrometer.trace.reading.read import read_trace

    paths = []
    for rank in range(2):
        builder = new_builder(tmp_path, distributedInfo={"rank": rank, "world_size": 2})
        for i in range(rank + 1):
            builder.op("aten::add", i * 10, 5)
        paths.append(builder.write(f"{rank}.json"))
    answer = trace_sql(read_trace(paths), "select rank, count(*) as n from ops group by rank order by rank")
    assert answer.rows() == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select nope from kernels", "grid"),
        ("select * from kernel_table", "views: events, ops"),
        ("select * from events where", "sql parser error"),
        ("select 1; select 2", "only one"),
        ("", "only SELECT is answered"),
        ("drop table events", "only SELECT is answered, not DROP"),
        ("delete from events", "not DELETE"),
        ("truncate table events", "not TRUNCATE"),
        ("create table x as select * from events", "not CREATE"),
        ("with x as (delete from events) select 1 from events", "query: "),
        ("select * from read_csv('/etc/passwd')", "reads the trace only"),
        ("select * from '/etc/passwd'", "reads the trace only"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_line(trace, query, said):
    with pytest.raises(InputError) as refused:
        trace_sql(trace, query)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_name_in_quotes_is_no_file(trace):
    assert trace_sql(trace, "select name from events where name = 'drop; from read_csv('").is_empty()

"""A rank is told by the file, or else by its name, or else by the order of the arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrometer.errors import InputError
from pyrometer.trace.reading.ranks import number_ranks, rank_in_name
from pyrometer.trace.reading.read import read_trace


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-0.2024-05-01.123.pt.trace.json.gz", 0),
        ("rank0_trace.json", 0),
        ("trace_8_rank_1.json", 1),
        ("dp0_pp0_tp0_dcp0_ep0_rank12.77.pt.trace.json.gz", 12),
        ("rank[3].json", 3),
        ("Rank7.json", 7),
        ("run4/rank-5/trace.json", 5),
        ("node1_4711.1690000000000.pt.trace.json", None),
        ("frank3.json", None),
        ("rank_unavailable.json", None),
        ("libkineto_trace_5_77.json", None),
    ],
)
def test_rank_in_a_name(name, rank):
    assert rank_in_name(Path(name)) == rank


def test_trust_goes_file_then_name_then_order():
    files = [
        (Path("rank5.json"), 2),
        (Path("rank7.json"), None),
        (Path("a.json"), None),
        (Path("b.json"), None),
    ]
    assert number_ranks(files) == [(2, "distributedInfo"), (7, "file name"), (0, "order"), (1, "order")]


def test_ranks_by_order_avoid_those_that_are_told():
    assert number_ranks([(Path("a"), None), (Path("b"), 0), (Path("c"), None)]) == [
        (1, "order"),
        (0, "distributedInfo"),
        (2, "order"),
    ]


def test_two_files_of_one_rank_are_refused_by_name(text, tmp_path):
    for name in ("first.json", "second.json"):
        (tmp_path / name).write_bytes(text.good())
    with pytest.raises(
        InputError, match=r"rank 2 twice, by distributedInfo: .*first\.json and .*second\.json"
    ):
        read_trace([tmp_path / "first.json", tmp_path / "second.json"])


def test_rank_reaches_every_table(text, tmp_path):
    good = text.good().replace(b'"rank": 2, ', b"")
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(good)
    trace = read_trace([tmp_path / "a.json", tmp_path / "b.json"])
    assert [rank.rank for rank in trace.ranks] == [0, 1]
    for rank in trace.ranks:
        for table in rank.tables.values():
            if "rank" in table.columns and table.height:
                assert table["rank"].unique().to_list() == [rank.rank]


def test_ranks_of_one_real_job(real_traces):
    trace = read_trace([real_traces / "sampled_rank1.json.gz", real_traces / "sampled_rank0.json.gz"])
    assert [(rank.rank, rank.info.world_size, rank.info.rank_from) for rank in trace.ranks] == [
        (1, 128, "distributedInfo"),
        (0, 128, "distributedInfo"),
    ]

"""Summaries are put away while ranks are compared, and come back as they were."""

from __future__ import annotations

import errno
import io
import tempfile
from typing import Any

import pytest

from pyrometer.errors import InputError
from pyrometer.trace.jobs import held
from pyrometer.trace.jobs.held import Summaries
from pyrometer.trace.jobs.merge import merge_ranks
from pyrometer.trace.jobs.reduce import reduce_rank
from pyrometer.trace.jobs.summary import RankSummary
from pyrometer.trace.reading.read import read_trace


@pytest.fixture
def summaries(synthetic_job: Any) -> list[RankSummary]:
    return [reduce_rank(rank) for rank in read_trace(synthetic_job(slow_us={2: 200}).write()).ranks]


@pytest.mark.parametrize("in_memory", [0, held.IN_MEMORY_BYTES])
def test_what_is_put_away_comes_back_whole_in_any_order(
    summaries: list[RankSummary], in_memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "IN_MEMORY_BYTES", in_memory)
    told = merge_ranks(summaries)
    assert [straggler.rank for straggler in told.stragglers] == [2]
    assert told.stragglers[0].suspects
    with Summaries() as kept:
        ranks = [kept.put(summary) for summary in summaries]
        for place in (2, 0, 3, 1):
            back = kept.of(ranks[place])
            assert (back.calls, back.work, back.steps) == (
                summaries[place].calls,
                summaries[place].work,
                summaries[place].steps,
            )
            assert ranks[place].path == summaries[place].path


def test_a_path_need_not_be_unicode(summaries: list[RankSummary]) -> None:
    odd = RankSummary(rank=0, path="rank\udcff.json")
    with Summaries() as kept:
        one = kept.put(odd)
        assert one.path == odd.path
        assert kept.of(one).rank == 0


def test_of_files_that_claim_one_rank_the_first_by_path_stays(summaries: list[RankSummary]) -> None:
    def named(path: str) -> RankSummary:
        return RankSummary(rank=5, path=path)

    job = merge_ranks([*summaries, named("c"), named("a"), named("b")])
    assert [row.path for row in job.ranks if row.rank == 5] == ["a"]
    assert [(failure.path, failure.message) for failure in job.failures] == [
        (path, "claims to be rank 5, as a does; pass one file per rank") for path in ("b", "c")
    ]


def test_no_room_is_told_in_a_line(summaries: list[RankSummary], monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _whole: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda **_: Full())
    with pytest.raises(InputError, match=r"No space left on device.*set TMPDIR"):
        merge_ranks(summaries)

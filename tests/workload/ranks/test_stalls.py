"""Who waits for whom, from what ranks answer; and when a rank has been silent for too long."""

from __future__ import annotations

import pytest

from pyrometer.workload.ranks.stalls import LogTail, judge
from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.startup._pyrometer_inside.log import EventLog

S = 10**9
TORCH = "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


def answer(line, *collectives, function="train", groups=None):
    """A rank that stands in a line; collectives are (group, sequence, operation, whether it is in it)."""
    inside = any(is_open for *_, is_open in collectives)
    frames = [[TORCH, 3245, "all_reduce"]] if inside else []
    return {
        "stack": [*frames, ["/home/me/train.py", line, function]],
        "groups": groups or {"0": "[0, 1, 2, 3]"},
        "collectives": [
            {
                "group": group,
                "sequence": sequence,
                "operation": f"gloo:{operation}",
                "sizes": [[8]],
                "is_open": is_open,
                "is_p2p": False,
            }
            for group, sequence, operation, is_open in collectives
        ],
    }


def judged(answers, unanswered=()):
    return judge(answers, unanswered, after_s=90.0, silent_s=60.0)


def ranks(waiting):
    return [one.rank for one in waiting]


def test_those_in_a_collective_wait_for_the_rank_that_has_not_begun_it():
    at = answer(40, ("0", 6, "all_reduce", False), ("0", 7, "all_reduce", True))
    stall = judged({
        0: at,
        1: at,
        2: answer(31, ("0", 6, "all_reduce", False), function="validate"),
        3: at,
    })  # fmt: skip
    assert ranks(stall.waiting) == [0, 1, 3]
    assert ranks(stall.missing) == [2]
    assert (stall.missing[0].place, stall.missing[0].function) == ("/home/me/train.py:31", "validate")
    first = stall.waiting[0]
    assert (first.operation, first.sequence, first.elements) == ("gloo:all_reduce", 7, [8])
    assert first.place == "/home/me/train.py:40", "the line of torch's own is of no use"


def test_a_rank_outside_of_the_group_is_not_waited_for():
    groups = {"0": "[0, 1, 2]", "tp": "[0, 1]"}
    stall = judged({
        0: answer(40, ("tp", 3, "all_gather", True), groups=groups),
        1: answer(31, ("tp", 2, "all_gather", False), groups=groups),
        2: answer(77, groups=groups),
    })  # fmt: skip
    assert ranks(stall.missing) == [1]


def test_where_all_wait_the_one_that_has_come_less_far_is_missing():
    stall = judged({
        0: answer(40, ("0", 8, "all_reduce", True)),
        1: answer(12, ("0", 7, "broadcast", True)),
    })  # fmt: skip
    assert ranks(stall.waiting) == [0]
    assert (stall.missing[0].rank, stall.missing[0].operation) == (1, "gloo:broadcast")


def test_all_in_the_same_collective_wait_for_nobody():
    at = answer(40, ("0", 8, "all_reduce", True))
    stall = judged({0: at, 1: at})
    assert (ranks(stall.waiting), stall.missing) == ([0, 1], [])


def test_a_rank_that_gives_no_answer_is_missing():
    stall = judged({0: answer(40, ("0", 8, "all_reduce", True))}, unanswered=[1])
    assert (ranks(stall.missing), stall.missing[0].place) == ([1], None)


def test_without_a_collective_all_are_told_where_they_are():
    stall = judged({0: answer(5), 1: answer(6)})
    assert (stall.waiting, ranks(stall.missing)) == ([], [0, 1])


class TestSilence:
    def tail(self, tmp_path, *at_s, ended=False):
        log = EventLog(str(tmp_path / "events"))
        for second in at_s:
            log.add_at(second * S, kinds.FORWARD_BEGIN)
        if ended:
            log.add(kinds.ENDED)
        tail = LogTail(tmp_path / "events", 0)
        tail.look()
        return log, tail

    def test_silence_is_told_after_the_limit(self, tmp_path):
        _, tail = self.tail(tmp_path, 1, 2, 3)
        assert tail.silent_s(60 * S, 60) == 0
        assert tail.silent_s(64 * S, 60) == pytest.approx(61)

    def test_a_rank_that_has_paused_before_is_given_ten_times_as_long(self, tmp_path):
        _, tail = self.tail(tmp_path, 1, 2, 32)
        assert tail.silent_s(300 * S, 60) == 0
        assert tail.silent_s(340 * S, 60) == pytest.approx(308)

    def test_what_is_added_later_is_read_on(self, tmp_path):
        log, tail = self.tail(tmp_path, 1, 2)
        log.add_at(100 * S, kinds.BACKWARD_BEGIN)
        tail.look()
        assert tail.last_ns == 100 * S

    def test_samples_of_memory_are_no_movement(self, tmp_path):
        log, tail = self.tail(tmp_path, 1, 2)
        log.add_at(100 * S, kinds.RESIDENT_BYTES)
        tail.look()
        assert tail.last_ns == 2 * S

    def test_a_rank_that_has_not_begun_or_has_ended_is_not_silent(self, tmp_path):
        _, tail = self.tail(tmp_path, 1, ended=True)
        assert tail.silent_s(900 * S, 60) == 0
        assert LogTail(tmp_path / "nothing", 0).silent_s(900 * S, 60) == 0

"""What the ranks of a launch tell who holds them, one message a line, and how the answers of all make one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from pyrometer.bench.fresh import Failure
from pyrometer.bench.worker import Ran
from pyrometer.record import Record
from pyrometer.tuning.trials.gate import CaseError
from pyrometer.tuning.trials.protocol import Checked, Opened, PeakRead

WHERE = b"where"
"""Asked of a rank at any moment: the line that it is in."""


class Hello(Record, frozen=True, kw_only=True):
    """The first message of a rank."""

    rank: int


class Answer(Record, frozen=True, kw_only=True):
    """What a rank makes of a request."""

    result: msgspec.Raw = msgspec.Raw(b"null")
    failure: Failure | None = None
    place: str | None = None
    """Where it stands, if it was asked for that."""

    ended: int | None = None
    """Steps that the script made, where it has come to its end."""


def merged(answers: Sequence[Any]) -> Any:
    """One answer of those of all ranks: a step takes as long as on the slowest, and is as wrong as on the worst."""
    first = answers[0]
    if isinstance(first, Ran):
        times = [max(each) for each in zip(*(answer.times_s for answer in answers), strict=True)]
        return Ran(times_s=times, cpu_s=sum(answer.cpu_s for answer in answers))
    if isinstance(first, Checked):
        return Checked(
            cases=[_worst(list(cases)) for cases in zip(*(each.cases for each in answers), strict=True)]
        )
    if isinstance(first, PeakRead):
        return max(answers, key=lambda answer: answer.peak_bytes)
    if isinstance(first, Opened):
        reasons = [answer.not_applied for answer in answers if answer.not_applied is not None]
        return replace(
            first,
            first_call_s=max(answer.first_call_s for answer in answers),
            not_applied=next(iter(reasons), None),
        )
    return first


def _worst(cases: list[CaseError]) -> CaseError:
    """The case of the rank that is furthest off."""
    return max(
        cases, key=lambda case: (case.mismatch is not None, case.max_rel or 0.0, -(case.cosine or 1.0))
    )

"""Which rank a file belongs to: what it says itself, before its name, before the order of the arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pyrometer.errors import InputError

_IN_NAME = re.compile(r"(?<![a-z])rank[\[\-_/= ]?(\d+)", re.IGNORECASE)

FROM_FILE = "distributedInfo"
FROM_NAME = "file name"
FROM_ORDER = "order"


def rank_in_name(path: Path) -> int | None:
    """The rank that a file's name tells, or else its folder's.

    >>> rank_in_name(Path("dp0_pp0_tp3_rank11.16012.pt.trace.json.gz")), rank_in_name(Path("rank-2/trace.json"))
    (11, 2)
    >>> rank_in_name(Path("host7_4711.1690000000.pt.trace.json")), rank_in_name(Path("rank_unavailable.json"))
    (None, None)
    """
    for text in (path.name, path.parent.name):
        matches = _IN_NAME.findall(text)
        if matches:
            digits = matches[-1]
            return int(digits) if len(digits) < 10 else None
    return None


def number_ranks(files: Sequence[tuple[Path, int | None]]) -> list[tuple[int, str]]:
    """Give every file its rank, and say where that is from.

    Args:
        files: path, and the rank that the file itself names.

    Raises:
        InputError: two files are of the same rank.
    """
    told = [_told(path, rank) for path, rank in files]
    held: dict[int, Path] = {}
    for (path, _), known in zip(files, told, strict=True):
        if known is None:
            continue
        rank, source = known
        if rank in held:
            raise InputError(
                f"rank {rank} twice, by {source}: {held[rank]} and {path}; pass one file per rank,"
                " or read them apart to compare them"
            )
        held[rank] = path
    free = (rank for rank in range(len(files)) if rank not in held)
    return [known or (next(free), FROM_ORDER) for known in told]


def _told(path: Path, rank: int | None) -> tuple[int, str] | None:
    if rank is not None:
        return rank, FROM_FILE
    named = rank_in_name(path)
    return None if named is None else (named, FROM_NAME)

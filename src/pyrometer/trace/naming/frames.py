"""Names of Python functions, `train.py(12): step`: their parts, and whose code they are."""

from __future__ import annotations

import polars as pl

from pyrometer.source.ownership import owner_of

FRAME = r"^(?P<file>.*)\((?P<line>\d+)\): (?P<function>.*)$"
"""File, the line at which the function begins, and its name."""

RUNS_STEPS = r"(?:^|/)pyrometer/workload/(?:call|inference|training)\.py"
"""Of ours, those that call the user's step: whoever called them only started it, be it a script, a notebook or a command."""


KINDS = {"name": pl.String, **dict.fromkeys(("is_user", "is_library", "is_ours", "runs_steps"), pl.Boolean)}

OURS = "Pyrometer"
"""What functions of our own are called where they are told: they run the user's steps, and are none of the program's."""


def without_ours(names: pl.Series) -> pl.Series:
    """The names, those of functions of our own all as `OURS`.

    >>> without_ours(pl.Series(["train.py(12): step", "pyrometer/workload/training.py(141): _run", None])).to_list()
    ['train.py(12): step', 'Pyrometer', None]
    """
    kinds = frame_kinds(names)
    ours = kinds.filter(pl.col("is_ours"))["name"]
    plain = names.cast(pl.String)
    return plain.set(plain.is_in(ours.implode()).fill_null(value=False), OURS) if len(ours) else plain


def frame_parts(names: pl.Series) -> pl.DataFrame:
    """`file, line, function` of each name; null where it is no function of a file.

    >>> frame_parts(pl.Series(["train.py(12): step", "aten::mm"])).rows()
    [('train.py', 12, 'step'), (None, None, None)]
    """
    parsed = names.to_frame("frame").select(pl.col("frame").str.extract_groups(FRAME).struct.unnest())
    return parsed.with_columns(pl.col("line").cast(pl.Int64, strict=False))


def frame_kinds(names: pl.Series) -> pl.DataFrame:
    """Each distinct function `name`, other names left out: whether it `is_user`, `is_library` other than Python and torch, `is_ours`, or `runs_steps`.

    >>> frame_kinds(pl.Series(["numpy/linalg.py(3): norm", "enum.py(7): f", "net.py(9): forward"]))["is_user"].to_list()
    [False, False, True]
    """
    distinct = names.cast(pl.String).alias("name").unique(maintain_order=True)
    distinct = distinct.filter(distinct.str.contains("): ", literal=True))
    if not len(distinct):
        return pl.DataFrame(schema=KINDS)
    parts = frame_parts(distinct).select("file", "function").rows()
    owners = pl.Series([file and owner_of(file, function) for file, function in parts], dtype=pl.String)
    return pl.DataFrame(
        [
            distinct,
            (owners == "user").fill_null(value=False).alias("is_user"),
            (owners == "library").fill_null(value=False).alias("is_library"),
            (owners == "ours").fill_null(value=False).alias("is_ours"),
            ((owners == "ours") & distinct.str.contains(RUNS_STEPS))
            .fill_null(value=False)
            .alias("runs_steps"),
        ]
    )

"""Any table of a trace as Parquet or CSV."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from pyrometer.errors import InputError
from pyrometer.trace.export.whole import exporting

FORMATS = (".parquet", ".csv")


def export_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table; the suffix says how. In CSV lists become JSON-like text, since it knows no lists.

    Args:
        frame: such as `trace.events`, or what an analysis gave.
        path: ends in `.parquet` or `.csv`; written beside and then renamed.

    Raises:
        InputError: another suffix, or the file cannot be written.
    """
    if path.suffix not in FORMATS:
        raise InputError(f"{path}: a table is written as {' or '.join(FORMATS)}; rename the file")
    with exporting(path) as beside:
        if path.suffix == ".parquet":
            frame.write_parquet(beside)
        else:
            flat(frame).write_csv(beside)


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """A table without nested columns: lists become text.

    >>> flat(pl.DataFrame({"grid": [[1, 2, 3]]}))["grid"].to_list()
    ['[1,2,3]']
    """
    return frame.with_columns(
        pl.format("[{}]", pl.col(name).list.eval(pl.element().cast(pl.String)).list.join(",")).alias(name)
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.List)
    )

"""What the names of copies say: from where to where, and through what memory of the host."""

from __future__ import annotations

import polars as pl

SHORT = r"\b([HDPM])(?:to|2)([HDPM])\b"
"""`Memcpy HtoD (Pinned -> Device)`."""

LONG = r"(?i)(host|device) ?(?:to|->) ?(host|device)"
"""`CopyHostToDevice`, `Memcpy (Host -> Device)`."""

UNPINNED = r"Pageable|-> Host\)|\(Host ->"
"""Copies from or to memory of the host that is not pinned, or of which the file does not say."""


def copy_direction(text: str = "name") -> pl.Expr:
    """`H2D`, `D2H`, `D2D`, `P2P` or `H2H`, as a column says it; null where it does not.

    >>> names = pl.DataFrame({"name": ["Memcpy HtoD (Pinned -> Device)", "CopyDeviceToHost", "CopyBuffer"]})
    >>> names.select(copy_direction())["name"].to_list()
    ['H2D', 'D2H', None]
    """
    said = pl.col(text)
    ends = [
        pl.coalesce(said.str.extract(SHORT, end), said.str.extract(LONG, end).str.head(1).str.to_uppercase())
        for end in (1, 2)
    ]
    return pl.concat_str(ends[0], pl.lit("2"), ends[1]).str.replace_all("M", "H").alias(text)


def between_host_and_device() -> pl.Expr:
    """Copies between host and device, which do not use the device's memory alone."""
    return copy_direction().is_in(["H2D", "D2H"])

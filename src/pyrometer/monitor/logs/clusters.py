"""Errors whose texts differ in figures, names and addresses alone are one cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import polars as pl

MOST_CLUSTERS = 500
LONGEST = 300

_STAND_INS = (
    (r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b", "<hex>"),
    (r"""'[^']*'|"[^"]*\"""", "<text>"),
    (r"(?:/[\w.~+-]+){2,}", "<path>"),
    (r"\d+(?:\.\d+)?", "<n>"),
)
_SEEN = ("version", "device", "shape", "batch", "call")


@dataclass
class Cluster:
    """Errors of one template."""

    example: str
    first: str
    last: str
    count: int = 0
    values: Counter[tuple[str, str]] = field(default_factory=Counter)


class Clusters:
    """All clusters of a log; beyond `MOST_CLUSTERS` templates the rest counts as one."""

    def __init__(self) -> None:
        self.found: dict[str, Cluster] = {}

    def add(self, table: pl.DataFrame) -> None:
        """Take in the errors of a table."""
        failed = table.filter(pl.col("error").fill_null("") != "")
        if not failed.height:
            return
        template = pl.col("error").str.slice(0, LONGEST)
        for pattern, stand_in in _STAND_INS:
            template = template.str.replace_all(pattern, stand_in)
        seen = [pl.col(name).cast(pl.String).fill_null("") for name in _SEEN]
        groups = failed.group_by(template.alias("template"), *seen).agg(
            pl.col("error").sort_by("timestamp").first().str.slice(0, LONGEST),
            pl.col("timestamp").min().alias("first"),
            pl.col("timestamp").max().alias("last"),
            pl.len().alias("count"),
        )
        for row in groups.iter_rows(named=True):
            self._take(row)

    def _take(self, row: dict[str, str | int]) -> None:
        template, count = str(row["template"]), int(row["count"])
        if template not in self.found and len(self.found) >= MOST_CLUSTERS:
            template = "all others"
        first, last = str(row["first"]), str(row["last"])
        cluster = self.found.setdefault(template, Cluster(str(row["error"]), first, last))
        if first < cluster.first:
            cluster.example = str(row["error"])
        cluster.first, cluster.last = min(cluster.first, first), max(cluster.last, last)
        cluster.count += count
        for name in _SEEN:
            if row[name]:
                cluster.values[name, str(row[name])] += count

"""Kernels of generated code, and what of the program each computes."""

from __future__ import annotations

from pyrometer.compiler.report import CompileReport
from pyrometer.report.facts.layout import Section, Table
from pyrometer.report.facts.trace_words import short, short_path

_MOST_NAMED = 6


def kernel_section(report: CompileReport) -> Section | None:
    """One row per kernel, with operations, lines and the file that holds its text; `None` where torch names no origins."""
    files = {(one.compile_id, kernel): one.path for one in report.code for kernel in one.kernels}
    body = [
        (
            short(one.kernel, 60),
            one.compile_id,
            short(", ".join(one.ops[:_MOST_NAMED]), 90) + (" …" if len(one.ops) > _MOST_NAMED else ""),
            ", ".join(short_path(place) for place in one.places[:3]),
            short_path(files.get((one.compile_id, one.kernel), "")),
        )
        for one in report.origins
    ]
    if not body:
        return None
    columns = ("kernel", "compilation", "computes", "lines", "file")
    how = "A kernel computes the named operations of the last graph, which come from these lines; its text is in the file, under the compiler's cache."
    return Section(
        "kernels",
        "Kernels and the lines that they come from",
        [],
        Table(columns, body, frozenset({1, 2, 3, 4})),
        how,
    )

"""Kernels of generated code, and what of the program each computes."""

from __future__ import annotations

from pyrometer.compiler.report import CompileReport
from pyrometer.report.facts.layout import Section, Table
from pyrometer.report.facts.trace_words import short, short_path

_MOST_NAMED = 6


def kernel_section(report: CompileReport) -> Section | None:
    """One row per kernel, with operations, lines and the file that holds its text; `None` where torch names no origins."""
    files = {(code.compile_id, kernel): code.path for code in report.code for kernel in code.kernels}
    body = [
        (
            short(origin.kernel, 60),
            origin.compile_id,
            short(", ".join(origin.ops[:_MOST_NAMED]), 90) + (" …" if len(origin.ops) > _MOST_NAMED else ""),
            ", ".join(short_path(place) for place in origin.places[:3]),
            short_path(files.get((origin.compile_id, origin.kernel), "")),
        )
        for origin in report.origins
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

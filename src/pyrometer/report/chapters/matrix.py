"""What `pyrometer bench --matrix` tells."""

from __future__ import annotations

from pyrometer.report.chapters.chapter import (
    Answer,
    Chapter,
    Heat,
    Rows,
    Text,
    Told,
)
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.facts import matrix as of_matrix
from pyrometer.report.target_documents import MatrixDocument


def tell(document: MatrixDocument) -> Told:
    """Which configuration to use, and every figure beside it."""
    matrix = document.matrix
    answer = Answer(of_matrix.headline(matrix), of_matrix.subtitle(matrix))
    how = (
        "Each figure is a paired comparison with eager float32 at the same batch size, inside one process: blue is faster, orange slower, the "
        "stronger the more; below it the measured throughput. An undecided cell says so."
    )
    change = (
        "Other input shapes, another machine, or a larger tolerance of the output. Between batch sizes the throughputs were measured one after "
        "the other: look at their intervals before choosing by a few per cent."
    )
    heat = Heat(of_matrix.heat_map(matrix), "Speed-up by configuration")
    cells = Rows(of_matrix.main_table(matrix), "Configurations", is_whole=True)
    chapters = [
        Chapter("heat", "Speed-up over eager float32", [heat], how=how, change=change),
        Chapter("cells", "Every configuration", [cells, Text(of_matrix.LEGEND)]),
        Chapter("tails", "Tails and first calls", [Rows(of_matrix.tail_table(matrix), is_whole=True)]),
        Chapter("costs", "Memory, graphs and numerics", [Rows(of_matrix.cost_table(matrix), is_whole=True)]),
    ]
    if matrix.rejected:
        rejected = Rows(of_matrix.rejection_table(matrix), is_whole=True)
        chapters.append(Chapter("rejected", "Not recommended", [rejected]))
    chapters += machine(document.environment)
    return Told(answer, chapters + provenance(document, document.environment))

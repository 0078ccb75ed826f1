"""What `pyrometer scale` tells."""

from __future__ import annotations

from pyrometer.report.chapters.chapter import Answer, Block, Chapter, Chart, Facts, Rows, Text, Told
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.facts import scaling as of_scaling
from pyrometer.report.target_documents import ScaleDocument

HOW = (
    "Work per rank stays the same, so that efficiency is the step of one rank over that of many. A step is computing, what communication does "
    "not hide behind it, and the wait for the slowest rank; each row names what takes most of what is lost. The band is the range: its lower end "
    "has no rank late and links as fast as the fit leaves open, its upper end the opposite."
)
CHECK_HOW = (
    "The same training on so many processes of this machine, steps with and without communication in turns. Predicted is from those without, "
    "from the links measured in the same run and from the schedule of collectives."
)


def tell(document: ScaleDocument) -> Told:
    """Step and efficiency by number of ranks, what binds, what it rests on."""
    answer = Answer(of_scaling.headline(document), f"{document.target} · {of_scaling.basis(document)}")
    table = Rows(of_scaling.prediction_table(document), "Predicted steps", is_whole=True)
    chapters = [
        Chapter(
            "scaling",
            "A step by number of ranks",
            [Chart("scaling", document.predictions), table],
            how=HOW,
            label="Ranks",
        ),
        *machine(document.environment, "Measured on"),
    ]
    if document.checks:
        checks = Rows(of_scaling.check_table(document), "Predicted beside measured", is_whole=True)
        chapters.append(
            Chapter("checks", "Predicted beside measured", [checks], how=CHECK_HOW, label="Checks")
        )
    chapters.append(
        Chapter(
            "communication",
            "What a step sends",
            [Facts(of_scaling.communication(document))],
            label="Messages",
        )
    )
    assumed: list[Block] = [Text(sentence) for sentence in document.assumptions]
    chapters.append(Chapter("assumptions", "What is assumed", assumed, label="Assumed"))
    return Told(answer, chapters + provenance(document, document.environment))

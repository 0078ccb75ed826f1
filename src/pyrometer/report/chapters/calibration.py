"""What `pyrometer calibrate` tells."""

from __future__ import annotations

from pyrometer.report.chapters.chapter import (
    Answer,
    Caveats,
    Chapter,
    Rows,
    Told,
)
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.documents import CalibrationDocument
from pyrometer.report.facts import calibration as of_calibration


def tell(document: CalibrationDocument) -> Told:
    """Which differences this machine can tell apart, and its peaks."""
    found = document.calibration
    answer = Answer(of_calibration.headline(found), of_calibration.subtitle(found))
    how = (
        "Each program was compared with itself. The scatter of the blocks says which true difference a comparison of 10 or 60 seconds "
        "would find in 95 of 100 cases. Wrong verdicts are counted by flipping the labels of the blocks at random."
    )
    change = "Other programs on the machine: calibrate again where and when you measure."
    resolutions = Rows(of_calibration.resolution_table(found), "Resolution by program", is_whole=True)
    trust = Caveats(found.advice, of_calibration.trust(found), not found.advice)
    told = [
        *machine(document.environment, "Calibrated on"),
        Chapter("quality", "Can it be trusted?", [trust], place="card"),
        Chapter("resolution", "What can be told apart", [resolutions], how=how, change=change, label="Apart"),
    ]
    if found.peaks is not None:
        blocks = [Rows(of_calibration.peak_table(found.peaks), "Peaks", is_whole=True)]
        if found.peaks.skipped:
            folded = f"Not measured ({len(found.peaks.skipped)})"
            blocks.append(Rows(of_calibration.skipped_table(found.peaks), "Not measured", folded))
        told.append(Chapter("peaks", f"Measured peaks of {found.peaks.name}", blocks))
    return Told(answer, told + provenance(document, document.environment))

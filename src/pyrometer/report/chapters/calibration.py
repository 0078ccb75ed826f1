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
from pyrometer.report.facts import calibration as of_calibration
from pyrometer.report.target_documents import CalibrationDocument


def tell(document: CalibrationDocument) -> Told:
    """Which differences this machine can tell apart, and its peaks."""
    calibration = document.calibration
    answer = Answer(of_calibration.headline(calibration), of_calibration.subtitle(calibration))
    how = (
        "Each program was compared with itself. The scatter of the blocks says which true difference a comparison of 10 or 60 seconds "
        "would find in 95 of 100 cases. Wrong verdicts are counted by flipping the labels of the blocks at random."
    )
    change = "Other programs on the machine: calibrate again where and when you measure."
    resolutions = Rows(of_calibration.resolution_table(calibration), "Resolution by program", is_whole=True)
    trust = Caveats(calibration.advice, of_calibration.trust(calibration), not calibration.advice)
    chapters = [
        *machine(document.environment, "Calibrated on"),
        Chapter("quality", "Can it be trusted?", [trust], place="card"),
        Chapter("resolution", "What can be told apart", [resolutions], how=how, change=change, label="Apart"),
    ]
    if calibration.peaks is not None:
        blocks = [Rows(of_calibration.peak_table(calibration.peaks), "Peaks", is_whole=True)]
        if calibration.peaks.skipped:
            folded = f"Not measured ({len(calibration.peaks.skipped)})"
            blocks.append(Rows(of_calibration.skipped_table(calibration.peaks), "Not measured", folded))
        chapters.append(Chapter("peaks", f"Measured peaks of {calibration.peaks.name}", blocks))
    return Told(answer, chapters + provenance(document, document.environment))

"""Parts of a step add up to the measured median, whatever clock they were taken on."""

from __future__ import annotations

import pytest

from pyrometer.report.chapters import check
from pyrometer.report.facts import step
from recorded import CHECKED, checked


@pytest.mark.parametrize("program", CHECKED)
def test_parts_are_shares_of_the_measured_median(program):
    document = checked(program)
    m = document.evidence.measurement
    assert m is not None
    assert step.step_s(document.evidence) == m.median_s
    assert sum(step.shares(document.evidence).values()) == pytest.approx(1)
    split = next(chapter for chapter in check.tell(document).chapters if chapter.slug == "split")
    assert split.blocks[0].in_all.note == "median of the measured steps"


def test_data_has_the_share_that_was_measured_without_the_profiler():
    evidence = checked("broken_perception").evidence
    assert evidence.measurement is not None
    data = next(phase for phase in evidence.measurement.phases if phase.name == "data")
    assert step.shares(evidence)["data"] == pytest.approx(data.share)
    assert not step.is_by_phase(evidence)
    assert step.is_by_phase(checked("slow_loader").evidence)  # there the profiler distorts it

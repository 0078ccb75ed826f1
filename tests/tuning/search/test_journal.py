"""A search that was killed goes on where it was, and never on what was half written."""

from __future__ import annotations

import pytest

from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.outcome import LeverOutcome
from pyrometer.tuning.search.journal import Journal, identity_of

COMPILE = LeverChoice(lever="compile", parameters={"mode": "default"})
LAYOUT = LeverChoice(lever="channels_last")


def outcome(*configuration, against=()):
    return LeverOutcome(
        name=configuration[-1].lever,
        outcome="slower",
        against=list(against),
        configuration=list(configuration),
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def test_what_was_decided_is_recalled_for_the_same_pair_of_configurations(path):
    Journal(path, "a", resume=False).add(outcome(LAYOUT))
    again = Journal(path, "a", resume=True)
    assert again.recall((), (LAYOUT,)).outcome == "slower"
    assert again.recall((COMPILE,), (LAYOUT, COMPILE)) is None
    assert again.note == "--resume: 1 trial of the search before taken over"


def test_without_resume_nothing_is_recalled(path):
    Journal(path, "a", resume=False).add(outcome(LAYOUT))
    again = Journal(path, "a", resume=False)
    assert again.recall((), (LAYOUT,)) is None
    assert again.note is None


def test_another_program_or_goal_begins_anew(path):
    Journal(path, "a", resume=False).add(outcome(LAYOUT))
    other = Journal(path, "b", resume=True)
    assert "begun anew, since the search before had another program" in other.note
    assert other.recall((), (LAYOUT,)) is None
    assert Journal(path, "b", resume=True).note == "--resume: 0 trials of the search before taken over"


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_line_that_was_cut_short_is_tried_again(path, cut):
    journal = Journal(path, "a", resume=False)
    journal.add(outcome(LAYOUT))
    journal.add(outcome(COMPILE))
    raw = path.read_bytes()
    path.write_bytes(raw[:-cut])
    again = Journal(path, "a", resume=True)
    assert again.recall((), (LAYOUT,)) is not None
    again.add(outcome(COMPILE))
    assert Journal(path, "a", resume=True).recall((), (COMPILE,)) is not None


def test_a_file_that_is_no_journal_is_begun_anew(path):
    path.write_bytes(b"\x00 not ours")
    assert "begun anew" in Journal(path, "a", resume=True).note


def test_without_an_earlier_search_one_is_begun(path):
    assert f"no earlier search is at {path}" in Journal(path, "a", resume=True).note


def test_identities_of_other_texts_differ():
    assert identity_of("ab", "c") != identity_of("a", "bc")


def test_a_disk_that_is_full_loses_the_line_and_not_the_search(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl", "id", resume=False)
    (tmp_path / "journal.jsonl").unlink()
    (tmp_path / "journal.jsonl").mkdir()  # what cannot be written to
    journal.add(outcome(LAYOUT))
    assert journal.recall((), (LAYOUT,)) == outcome(LAYOUT)
    assert "not all trials could be written down" in journal.note

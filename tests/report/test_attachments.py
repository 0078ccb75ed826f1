"""Attachments: kept with a run, read again, and drawn by its page."""

from __future__ import annotations

from datetime import UTC

import pytest

from pyrometer.errors import InputError
from pyrometer.record import to_dict
from pyrometer.report.attaching import earlier_runs, stored_attachments
from pyrometer.report.attachments import ARTIFACT, EARLIER_ARTIFACT, Attachments, SourceText, pack, unpack
from pyrometer.report.html import page
from pyrometer.store.run import new_run
from pyrometer.store.store import Store

KEPT = Attachments(sources=[SourceText(file="train.py", first_line=3, lines=["loss.item()"])])


def stored(store, document, moment, attachments=None, target="train.py:work", *, name=ARTIFACT):
    run = new_run(
        "check",
        target,
        to_dict(document),
        environment=to_dict(document.environment),
        command=["pyrometer"],
        commit=(None, None),
        now=moment,
    )
    return store.save(run, {name: pack(attachments)} if attachments is not None else None)


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "store")


@pytest.fixture
def moments():
    from datetime import datetime

    return [datetime(2026, 11, day, tzinfo=UTC) for day in range(1, 5)]


def test_the_same_attachments_give_the_same_bytes_and_come_back():
    assert pack(KEPT) == pack(KEPT)
    assert unpack(pack(KEPT)) == KEPT


def test_damaged_attachments_are_one_clear_error():
    for content in (b"", b"not gzip", pack(KEPT)[:-9], pack(KEPT)[:30] + bytes(12) + pack(KEPT)[42:]):
        with pytest.raises(InputError, match="damaged"):
            unpack(content)


def test_a_stored_run_has_its_attachments_and_what_was_before_it(store, documents, moments):
    document = documents["steady"]
    first = stored(store, document, moments[0])
    run = stored(store, document, moments[1], KEPT)
    stored(store, document, moments[2])
    attachments = stored_attachments(store, run)
    assert attachments.sources == KEPT.sources
    assert [past.run_id for past in attachments.history] == [first.id, run.id]


def test_attachments_are_found_by_their_earlier_name(store, documents, moments):
    run = stored(store, documents["steady"], moments[0], KEPT, name=EARLIER_ARTIFACT)
    assert stored_attachments(store, run).sources == KEPT.sources


@pytest.mark.parametrize("damage", ["gone", "cut", "a folder"])
def test_a_run_whose_attachments_are_gone_or_damaged_has_a_page_that_says_so(
    store, documents, moments, damage
):
    run = stored(store, documents["steady"], moments[0], KEPT)
    path = store.folder / run.artifacts[0].path
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[:-9])
    elif damage == "a folder":
        path.mkdir()
    attachments = stored_attachments(store, run)
    assert attachments.sources == []
    text = page(documents["steady"], attachments)
    assert "drawings of this run are missing" in text
    assert "31.9 ms per step" in text


def test_other_targets_are_no_history(store, documents, moments):
    stored(store, documents["steady"], moments[0], target="train.py:work_of_another")
    run = stored(store, documents["steady"], moments[1])
    assert [earlier_run.id for earlier_run in earlier_runs(store, run)] == [run.id]

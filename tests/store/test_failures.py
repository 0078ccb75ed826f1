from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrometer.errors import StoreError
from pyrometer.store.run import Run
from pyrometer.store.store import Store


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting needs root: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A view of `tmp_path / "source"` that nobody can write."""
    source, view = tmp_path / "source", tmp_path / "view"
    source.mkdir()
    view.mkdir()
    _mount("--bind", str(source), str(view))
    try:
        _mount("-o", "remount,ro,bind", str(view))
        yield view
    finally:
        subprocess.run(["umount", str(view)], check=True)


def _one_line(error: StoreError, path: Path) -> str:
    message = str(error)
    assert "\n" not in message
    assert str(path) in message
    assert "pass --store DIR" in message
    return message


def _fill(store: Store, make_run, *, in_files: bool) -> tuple[list[Run], StoreError]:
    """Save until the disk is full; what was saved, and the error then."""
    saved: list[Run] = []
    for _ in range(100):
        payload = os.urandom(30_000).hex()
        run = make_run(document={"payload": "" if in_files else payload})
        try:
            saved.append(store.save(run, {"a.txt": payload.encode() if in_files else b"x"}))
        except StoreError as error:
            return saved, error
    raise AssertionError("the disk is larger than it should be")


@pytest.mark.parametrize("in_files", [True, False])
def test_a_full_disk_loses_nothing_that_was_saved(small_disk: Path, make_run, in_files: bool):
    store = Store.open(small_disk / "store")
    saved, error = _fill(store, make_run, in_files=in_files)
    assert "disk is full" in _one_line(error, small_disk)
    assert len(saved) > 3
    assert {run.id for run in store.runs()} == {run.id for run in saved}
    assert {folder.name for folder in (store.folder / "artifacts").iterdir()} == {run.id for run in saved}
    assert store.load(saved[-1].id) == saved[-1]


def test_pruning_makes_room_on_a_full_disk(small_disk: Path, make_run):
    store = Store.open(small_disk / "store")
    saved, _ = _fill(store, make_run, in_files=True)
    store.prune(keep=1)
    assert [run.id for run in store.runs()] == [saved[-1].id]
    store.save(make_run(), {"a.txt": bytes(60_000)})


def test_a_store_that_cannot_begin_on_a_full_disk_says_so(small_disk: Path):
    with pytest.raises(OSError, match="No space"):
        (small_disk / "filler").write_bytes(bytes(2 << 20))
    with pytest.raises(StoreError) as caught:
        Store.open(small_disk / "store")
    assert "disk is full" in _one_line(caught.value, small_disk)


def test_a_file_size_limit_stores_nothing_and_leaves_the_rest_readable(store: Store, make_run):
    kept = store.save(make_run())
    code = f"""
import resource, sys
from datetime import datetime, timezone
from pyrometer.errors import StoreError
from pyrometer.store.run import new_run
from pyrometer.store.run import Run
from pyrometer.store.store import Store
store = Store.open({str(store.folder)!r})
run = new_run("bench", "t", {{"text": "x" * 3_000_000}}, environment={{}}, command=[], commit=(None, None), now=datetime.now(timezone.utc))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
for artifacts in ({{}}, {{"a": bytes(300_000)}}):
    try:
        store.save(run, artifacts)
    except StoreError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    messages = done.stdout.splitlines()
    assert len(messages) == 2, done.stdout
    assert all("the disk is full" in message for message in messages)
    assert [run.id for run in store.runs()] == [kept.id]
    assert list((store.folder / "artifacts").iterdir()) == []


def test_a_read_only_store_is_read_and_not_written(read_only: Path, tmp_path: Path, make_run):
    saved = Store.open(tmp_path / "source" / "store").save(make_run(), {"a": b"1"})
    store = Store.open(read_only / "store", create=False)
    assert store.load("last") == saved
    assert store.read_file(saved, "a") == b"1"
    for act in (
        lambda: store.save(make_run()),
        lambda: store.save(make_run(), {"a": b"2"}),
        lambda: store.prune(keep=0),
    ):
        with pytest.raises(StoreError) as caught:
            act()
        assert "cannot be written" in _one_line(caught.value, read_only)
    assert store.read_file(saved, "a") == b"1"


def test_a_store_cannot_begin_in_a_read_only_folder(read_only: Path):
    with pytest.raises(StoreError) as caught:
        Store.open(read_only / "store")
    assert "Read-only file system: cannot be written" in _one_line(caught.value, read_only)


def test_a_path_below_a_file_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    for location in (tmp_path / "file", tmp_path / "file" / "store"):
        with pytest.raises(StoreError) as caught:
            Store.open(location)
        _one_line(caught.value, tmp_path / "file")


@pytest.mark.parametrize("content", [b"this is a text file, not a database" * 100, os.urandom(8192)])
def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes):
    (tmp_path / "runs.db").write_bytes(content)
    with pytest.raises(StoreError) as caught:
        Store.open(tmp_path)
    assert "file is not a database: not a store" in _one_line(caught.value, tmp_path / "runs.db")
    assert (tmp_path / "runs.db").read_bytes() == content


def test_a_damaged_database_is_refused(store: Store, make_run):
    for _ in range(20):
        store.save(make_run(document={"text": "x" * 10_000}))
    file = store.folder / "runs.db"
    content = bytearray(file.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        Store.open(store.folder).load("last")
    assert "damaged" in _one_line(caught.value, file)


def test_a_run_that_is_not_what_was_saved_is_refused_and_the_others_are_read(store: Store, make_run):
    damaged, sound = (store.save(make_run(document={"step_s": 0.125, "why": "text"})) for _ in range(2))
    for text, other, said in (("0.125", "0.725", "is not what was saved"), ('"why"', '"why', "is damaged")):
        connection = sqlite3.connect(store.folder / "runs.db")
        connection.execute(
            "UPDATE runs SET document = replace(document, ?, ?) WHERE id = ?", (text, other, damaged.id)
        )
        connection.commit()
        connection.close()
        with pytest.raises(StoreError, match=said) as caught:
            store.load(damaged.id)
        assert str(caught.value).startswith(f"{store.folder / 'runs.db'}: ")
        assert store.load(sound.id) == sound
        assert len(store.runs()) == 2


def test_a_listing_of_damaged_rows_is_refused_in_one_line(store: Store, make_run):
    store.save(make_run())
    connection = sqlite3.connect(store.folder / "runs.db")
    connection.execute("UPDATE runs SET headline = x'ff'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError) as caught:
        store.runs()
    assert "a run is damaged, and others can be read" in _one_line(caught.value, store.folder / "runs.db")


def test_an_empty_file_becomes_a_store(tmp_path: Path, make_run):
    (tmp_path / "runs.db").touch()
    Store.open(tmp_path).save(make_run())
    assert len(Store.open(tmp_path).runs()) == 1


def test_a_missing_store_is_not_made_by_reading(tmp_path: Path):
    with pytest.raises(
        StoreError, match=r"no runs are stored here; pass --store DIR, or make one with pyrometer"
    ):
        Store.open(tmp_path / "store", create=False)
    assert not (tmp_path / "store").exists()


def test_a_lock_that_lasts_too_long_is_one_line(store: Store, make_run):
    blocker = sqlite3.connect(store.folder / "runs.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    impatient = Store.open(store.folder, wait_s=0.2)
    with pytest.raises(StoreError) as caught:
        impatient.save(make_run(), {"a": b"1"})
    blocker.close()
    assert "another process kept the store locked" in _one_line(caught.value, store.folder)
    assert list((store.folder / "artifacts").iterdir()) == []
    assert store.runs() == []

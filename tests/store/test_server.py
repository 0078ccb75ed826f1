"""Stores on a PostgreSQL server, against a real one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from postgres_server import PASSWORD

from pyrometer.errors import StoreError
from pyrometer.store import schema
from pyrometer.store.failure import UnreachableError
from pyrometer.store.marks import with_baseline, with_note
from pyrometer.store.server import PART_BYTES
from pyrometer.store.store import Store

FORMS = (PASSWORD, "hun%40ter", "ter/2", "ter%2F2")


@pytest.fixture
def server_store(database: str) -> Store:
    return Store.open(database)


def test_what_was_saved_is_loaded_with_its_files(
    database: str, server_store: Store, make_run, tmp_path: Path
):
    trace = tmp_path / "trace.bin"
    trace.write_bytes(os.urandom(2 * PART_BYTES + 7))
    document = {"evidence": {"measurement": {"median_s": 0.1 + 0.2}}, "text": "größer 🔥 \x00", "none": None}
    saved = server_store.save(
        make_run(document=document), {"trace.bin": trace, "empty": b"", "a.html": b"<html>"}
    )
    store = Store.open(database, create=False)
    loaded = store.load("last")
    assert loaded == saved
    assert (loaded.number, loaded.median_s, loaded.dirty) == (1, 0.1 + 0.2, False)
    assert store.read_file(loaded, "trace.bin") == trace.read_bytes()
    assert store.read_file(loaded, "empty") == b""
    assert [len(part) for part in store.file_parts(loaded, "trace.bin")] == [PART_BYTES, PART_BYTES, 7]
    for artifact in loaded.artifacts:
        assert hashlib.sha256(store.read_file(loaded, artifact.name)).hexdigest() == artifact.sha256


def test_runs_are_listed_searched_and_pruned(server_store: Store, make_run, postgres, database: str):
    old = server_store.save(
        make_run(age_s=9e5, target="a.py:100%", document={"findings": [{"code": "PYR101"}]}), {"a": b"1234"}
    )
    new = server_store.save(make_run(kind="check", document={"findings": [{"code": "PYR1011"}]}))
    assert [run.id for run in server_store.runs()] == [new.id, old.id]
    assert [run.id for run in server_store.runs(name="100%")] == [old.id]
    assert [run.id for run in server_store.runs(kind="check", limit=3)] == [new.id]
    assert server_store.with_finding("PYR101", server_store.ids()) == {old.id}
    before = server_store.signature()
    assert server_store.prune(older_than_s=8e5, dry_run=True).freed_bytes == 4
    assert server_store.signature() == before
    assert [run.id for run in server_store.prune(older_than_s=8e5).runs] == [old.id]
    assert server_store.signature() != before
    assert server_store.ids() == [new.id]
    assert postgres.sql("SELECT count(*) FROM blobs", _name(database)) == "0"


def test_marks_of_several_writers_are_all_kept(database: str, server_store: Store):
    def note(number: int) -> None:
        Store.open(database).change_marks(lambda marks: with_note(marks, f"r{number}", f"note {number}"))

    _together([lambda number=number: note(number) for number in range(6)])
    marks = server_store.change_marks(lambda marks: with_baseline(marks, "a.py:f", "r1"))
    assert marks == server_store.marks()
    assert marks.notes == {f"r{number}": f"note {number}" for number in range(6)}


def test_many_writers_begin_an_empty_database_together_and_none_fails(database: str, make_run):
    runs = [[make_run(target=f"t{writer}") for _ in range(4)] for writer in range(8)]

    def write(mine) -> None:
        store = Store.open(database)
        for run in mine:
            store.save(run, {"a": run.id.encode()})

    _together([lambda mine=mine: write(mine) for mine in runs])
    store = Store.open(database, create=False)
    assert sorted(run.number for run in store.runs()) == list(range(1, 33))
    assert all(store.read_file(store.load(run.id), "a") == run.id.encode() for mine in runs for run in mine)


def test_migrations_lead_to_the_tables_that_the_code_uses(server_store: Store):
    with server_store._engine.connect() as connection:
        both = [schema.metadata, schema.server_metadata]
        assert compare_metadata(MigrationContext.configure(connection), both) == []


def test_a_newer_store_is_refused_in_one_line(database: str, server_store: Store, postgres):
    postgres.sql("UPDATE alembic_version SET version_num = '9999'", _name(database))
    with pytest.raises(
        StoreError, match=r"^postgresql://.*: the store has schema 9999, this Pyrometer knows"
    ):
        Store.open(database)


def test_a_database_without_runs_is_not_changed_by_reading(database: str, postgres):
    with pytest.raises(StoreError, match="no runs are stored here"):
        Store.open(database, create=False)
    assert postgres.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", _name(database)) == "0"


def test_a_user_who_may_only_read_reads(database: str, server_store: Store, postgres, make_run):
    saved = server_store.save(make_run(), {"a": b"1"})
    postgres.sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", _name(database))
    store = Store.open(postgres.address(_name(database), "reader"), create=False)
    assert store.load("last") == saved
    assert store.read_file(saved, "a") == b"1"
    for act in (
        lambda: store.save(make_run(), {"a": b"2"}),
        lambda: store.prune(keep=0),
        lambda: store.change_marks(lambda marks: marks),
    ):
        with pytest.raises(StoreError, match="this user may not do that") as caught:
            act()
        assert "\n" not in str(caught.value)
        assert not isinstance(caught.value, UnreachableError)
    assert server_store.ids() == [saved.id]


def test_a_lock_that_lasts_too_long_is_one_line(database: str, server_store: Store, make_run):
    impatient = Store.open(database, wait_s=0.2)
    with server_store._backend.writing(), pytest.raises(StoreError, match="kept the store locked"):
        impatient.save(make_run(), {"a": b"1"})
    assert server_store.ids() == []


def test_a_save_that_fails_leaves_nothing(
    server_store: Store, make_run, postgres, database: str, tmp_path: Path
):
    with pytest.raises(StoreError, match="No such file"):
        server_store.save(make_run(), {"a": b"1", "b": tmp_path / "gone"})
    run = server_store.save(make_run())
    with pytest.raises(StoreError, match="duplicate key"):
        server_store.save(run, {"a": b"1"})
    assert postgres.sql("SELECT count(*) FROM blobs", _name(database)) == "0"


def test_a_file_that_is_too_large_is_refused(server_store: Store, make_run, monkeypatch):
    monkeypatch.setattr("pyrometer.store.server.MOST_BYTES", 3)
    with pytest.raises(StoreError, match=r"trace.bin is larger than 3 B"):
        server_store.save(make_run(), {"trace.bin": b"1234"})


def test_a_run_that_is_not_what_was_saved_is_refused(server_store: Store, make_run, postgres, database: str):
    run = server_store.save(make_run(document={"step_s": 0.125}))
    postgres.sql(
        "UPDATE runs SET document = replace(document::text, '0.125', '0.725')::json", _name(database)
    )
    with pytest.raises(StoreError, match="is not what was saved"):
        server_store.load(run.id)


def test_a_password_opens_the_store_and_is_never_repeated(postgres, make_run):
    name = postgres.new_database()
    postgres.sql("GRANT CREATE ON SCHEMA public TO keyed", name)
    Store.open(postgres.address(name, "keyed", PASSWORD)).save(make_run())
    right = postgres.address(name, "keyed", PASSWORD)
    for address in (
        postgres.address(name, "keyed", PASSWORD + "x"),
        right.replace(f"/{name}", "/nowhere"),
        right.replace(f"host={postgres.folder}", "host=/nowhere"),
        right + "&nonsense=1",
        right.replace("%20", " "),
        right.replace("%40", "@"),
        right.replace("%2F", "/"),
        right.replace("%3F", "?"),
        right.replace("postgresql", "mysql"),
    ):
        with pytest.raises(StoreError) as caught:
            Store.open(address)
        chain, error = "", caught.value
        while error is not None:
            chain, error = chain + str(error), error.__cause__
        assert not any(form in chain for form in FORMS), chain
        assert "\n" not in str(caught.value)


def test_without_the_driver_its_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"pip install 'pyrometer\[postgres\]'"):
        Store.open("postgresql://me@host/db")


def test_a_store_in_a_folder_needs_no_driver(tmp_path: Path):
    code = f"import sys\nfrom pyrometer.store.store import Store\nStore.open({str(tmp_path / 's')!r})\nprint('psycopg' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )


def _name(address: str) -> str:
    return address.split("@/")[1].split("?", maxsplit=1)[0]


def _together(acts) -> None:
    failed: list[BaseException] = []

    def run(act) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - told by the thread that waits
            failed.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not failed, failed

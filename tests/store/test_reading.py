import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pyrometer.store.reading import read_run, read_summaries
from pyrometer.store.run import Run
from pyrometer.store.store import Store


@pytest.fixture
def saved(store: Store, make_run) -> list[Run]:
    runs = [make_run(kind=kind, target=f"a%b_{kind}.py:work") for kind in ("bench", "check", "bench")]
    return [store.save(run, {"report.html": b"<p>"}) for run in runs]


def test_a_run_is_what_the_store_loads(store: Store, saved: list[Run]):
    for reference in ("last", *(run.id for run in saved), saved[0].id[:-1]):
        assert read_run(store.folder, reference) == store.load(reference)


@pytest.mark.parametrize("kind", [None, "bench", "trace"])
@pytest.mark.parametrize("limit", [None, 1])
def test_summaries_are_what_the_store_lists(
    store: Store, saved: list[Run], kind: str | None, limit: int | None
):
    assert read_summaries(store.folder, kind=kind, limit=limit) == store.runs(kind=kind, limit=limit)


@pytest.mark.parametrize("reference", ["", "2", "no-such-run", "%", "_", "'"])
def test_what_the_store_refuses_is_left_to_it(store: Store, saved: list[Run], reference: str):
    assert read_run(store.folder, reference) is None


def test_nothing_is_made_where_no_store_is(tmp_path: Path):
    assert read_run(tmp_path, "last") is None
    assert read_summaries(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert read_summaries("postgresql://nobody@nowhere/runs") is None


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE alembic_version SET version_num = '0005'",
        "UPDATE alembic_version SET version_num = '9999'",
        "DROP TABLE alembic_version",
        "DROP TABLE runs",
        "UPDATE runs SET document = '{'",
        "UPDATE runs SET target = 'another'",
        "UPDATE runs SET document = 7",
        "ALTER TABLE runs RENAME COLUMN dirty TO clean",
    ],
)
def test_odd_stores_and_damaged_runs_are_left_to_the_store(store: Store, saved: list[Run], damage: str):
    connection = sqlite3.connect(store.folder / "runs.db")
    connection.execute("PRAGMA foreign_keys=OFF")
    connection.execute(damage)
    connection.commit()
    connection.close()
    assert read_run(store.folder, saved[0].id) is None


def test_a_file_that_is_no_database_is_left_to_the_store(tmp_path: Path):
    (tmp_path / "runs.db").write_text("no database, and longer than the head of one would be " * 9)
    assert read_run(tmp_path, "last") is None


def test_listing_runs_and_printing_their_documents_imports_no_database_library(
    store: Store, saved: list[Run]
):
    for arguments in (["runs"], ["runs", "--json"], ["show", "last", "--json"]):
        said = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "pyrometer", *arguments, "--store", str(store.folder)],
            capture_output=True,
            text=True,
            check=True,
        )
        imported = {line.rpartition("|")[2].strip() for line in said.stderr.splitlines()}
        assert "pyrometer.store.reading" in imported
        assert not imported & {"sqlalchemy", "polars", "numpy", "torch"}

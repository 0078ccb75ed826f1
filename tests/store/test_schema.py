from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import bindparam, delete, insert, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from pyrometer.errors import StoreError
from pyrometer.record import to_dict
from pyrometer.store import schema
from pyrometer.store.rows import digest_of
from pyrometer.store.sqlite import sqlite_engine
from pyrometer.store.store import Store

# The tables as the first version wrote them.
VERSION_1 = """
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, PRIMARY KEY (version_num));
INSERT INTO alembic_version VALUES ('0001');
CREATE TABLE runs (
    id VARCHAR(40) NOT NULL PRIMARY KEY, created_at VARCHAR(32) NOT NULL, kind VARCHAR(32) NOT NULL,
    target TEXT NOT NULL, command JSON NOT NULL, commit_sha VARCHAR(64), dirty BOOLEAN,
    environment JSON NOT NULL, fingerprint VARCHAR(128) NOT NULL, document JSON NOT NULL
);
CREATE TABLE artifacts (
    run_id VARCHAR(40) NOT NULL REFERENCES runs (id), name VARCHAR(255) NOT NULL, path TEXT NOT NULL,
    size_bytes BIGINT NOT NULL, sha256 VARCHAR(64) NOT NULL, PRIMARY KEY (run_id, name)
);
"""


def write_version_1(folder: Path) -> None:
    folder.mkdir()
    measured = {"schema_version": 1, "measurement": {"median_s": 0.5, "ci_low_s": 0.4, "ci_high_s": 0.6}}
    rows = [
        ("20260101-000000-aaaaaa", "2026-01-01T00:00:00.000000Z", "bench", "a.py:f", measured),
        ("20260102-000000-bbbbbb", "2026-01-02T00:00:00.000000Z", "calibration", "", {"peaks": {}}),
    ]
    connection = sqlite3.connect(folder / "runs.db")
    connection.executescript(VERSION_1)
    for run_id, created_at, kind, target, document in rows:
        values = (
            run_id,
            created_at,
            kind,
            target,
            '["pyrometer"]',
            None,
            None,
            "{}",
            "f",
            json.dumps(document),
        )
        connection.execute(f"INSERT INTO runs VALUES ({', '.join('?' * 10)})", values)
    connection.execute(
        "INSERT INTO artifacts VALUES (?, 'r.html', 'artifacts/x/r.html', 3, 'ff')", [rows[0][0]]
    )
    connection.commit()
    connection.close()


def test_a_store_of_the_first_version_is_upgraded_and_keeps_everything(tmp_path: Path):
    write_version_1(tmp_path / "store")
    store = Store.open(tmp_path / "store", create=False)
    newer, older = store.runs()
    assert (older.headline, older.median_s) == ("500 ms (400 ms–600 ms)", 0.5)
    assert (newer.headline, newer.median_s, newer.kind) == ("", None, "calibration")
    assert [artifact.name for artifact in store.load(older.id).artifacts] == ["r.html"]
    assert Store.open(tmp_path / "store").runs() == [newer, older]


def test_an_upgrade_that_fails_leaves_the_store_as_it_was(tmp_path: Path):
    write_version_1(tmp_path / "store")
    connection = sqlite3.connect(tmp_path / "store" / "runs.db")
    connection.execute(
        "CREATE INDEX runs_by_time ON runs (kind)"
    )  # stands in the way of the last step but one
    connection.close()
    with pytest.raises(StoreError, match="runs_by_time already exists"):
        Store.open(tmp_path / "store")
    connection = sqlite3.connect(tmp_path / "store" / "runs.db")
    assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
    assert "headline" not in [column[1] for column in connection.execute("PRAGMA table_info(runs)")]
    connection.close()


def test_a_newer_store_is_refused_in_one_line(store: Store):
    connection = sqlite3.connect(store.folder / "runs.db")
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError) as caught:
        Store.open(store.folder)
    assert str(caught.value) == (
        f"{store.folder}: the store has schema 9999, this Pyrometer knows {schema.REVISIONS[-1]} and earlier; "
        "upgrade Pyrometer, or pass --store DIR"
    )


def test_migrations_lead_to_the_tables_that_the_code_uses(store: Store):
    engine = sqlite_engine(store.folder / "runs.db", wait_s=1)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []


def test_every_migration_is_known_without_alembic():
    config = Config()
    config.set_main_option("script_location", "pyrometer.store:migrations")
    scripts = ScriptDirectory.from_config(config)
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == schema.REVISIONS


def test_a_current_store_is_opened_and_listed_without_torch_and_alembic(store: Store):
    code = (
        "import sys\nfrom pyrometer.store.store import Store\n"
        f"Store.open({str(store.folder)!r}).runs()\n"
        "print([name for name in ('torch', 'alembic', 'numpy', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_was_reported_as_saved_is_forced_to_the_disk(store: Store):
    with store._engine.connect() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_tables_and_statements_compile_for_postgresql():
    dialect = postgresql.dialect()
    tables = schema.metadata.tables.items()
    ddl = {name: str(CreateTable(table).compile(dialect=dialect)) for name, table in tables}
    assert all(str(CreateIndex(index).compile(dialect=dialect)) for index in schema.runs.indexes)
    assert "document JSON NOT NULL" in ddl["runs"]
    assert "size_bytes BIGINT NOT NULL" in ddl["artifacts"]
    runs = schema.runs
    statements = [
        select(runs)
        .where(runs.c.id.startswith("2026%", autoescape=True))
        .order_by(runs.c.created_at.desc())
        .limit(6),
        select(runs.c.id).where(runs.c.target.contains("x_", autoescape=True)).limit(None),
        insert(runs),
        insert(schema.artifacts),
        delete(runs).where(runs.c.id == bindparam("doomed")),
    ]
    for statement in statements:
        assert str(statement.compile(dialect=dialect))


def test_runs_of_before_are_numbered_by_their_dates_and_keep_their_digests(store: Store, make_run):
    saved = [store.save(make_run(age_s=age_s)) for age_s in (10, 5, 20)]
    connection = sqlite3.connect(store.folder / "runs.db")
    for run in saved:
        plain = {name: value for name, value in to_dict(run).items() if name not in {"artifacts", "number"}}
        connection.execute("UPDATE runs SET sha256 = ? WHERE id = ?", (digest_of(plain), run.id))
    connection.executescript(
        "DROP INDEX runs_by_number; ALTER TABLE runs DROP COLUMN number; DROP TABLE rollouts; DROP TABLE rollout_decisions;"
        "DROP TABLE rollout_counts; UPDATE alembic_version SET version_num = '0003'"
    )
    connection.close()
    again = Store.open(store.folder)
    assert [(run.id, run.number) for run in again.runs()] == [
        (saved[1].id, 3),
        (saved[0].id, 2),
        (saved[2].id, 1),
    ]
    assert again.load(saved[2].id).document == saved[2].document
    assert again.save(make_run(age_s=99)).number == 4


def test_a_number_that_is_not_what_was_saved_is_refused(store: Store, make_run):
    run = store.save(make_run())
    connection = sqlite3.connect(store.folder / "runs.db")
    connection.execute("UPDATE runs SET number = 7")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="is damaged"):
        store.load(run.id)

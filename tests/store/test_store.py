from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from pyrometer.errors import InputError, StoreError
from pyrometer.store.store import Store


def test_what_was_saved_is_loaded(store: Store, make_run):
    document = {
        "evidence": {"measurement": {"median_s": 0.002, "ci_low_s": 0.0019, "ci_high_s": 0.0021}},
        "text": "größer 🔥",
        "none": None,
    }
    saved = store.save(make_run(document=document))
    loaded = Store.open(store.folder).load(saved.id)
    assert loaded == saved
    assert loaded.document["text"] == "größer 🔥"
    assert loaded.document["run_id"] == saved.id
    assert (loaded.median_s, loaded.headline) == (0.002, "2.00 ms (1.90 ms–2.10 ms)")
    assert (loaded.fingerprint, loaded.commit_sha, loaded.dirty) == ("f00d", "0123456789abcdef", False)


def test_files_are_kept_with_their_checksum(store: Store, make_run, tmp_path: Path):
    trace = tmp_path / "trace.bin"
    trace.write_bytes(os.urandom(3 << 20))
    saved = store.save(make_run(), {"report.html": b"<html>", "trace.bin": trace, "empty": b""})
    loaded = store.load(saved.id)
    assert {artifact.name: artifact.size_bytes for artifact in loaded.artifacts} == {
        "report.html": 6,
        "trace.bin": 3 << 20,
        "empty": 0,
    }
    for artifact in loaded.artifacts:
        content = store.read_file(loaded, artifact.name)
        assert hashlib.sha256(content).hexdigest() == artifact.sha256
    assert store.read_file(loaded, "trace.bin") == trace.read_bytes()


def test_a_file_that_a_run_has_not_is_refused_with_those_it_has(store: Store, make_run):
    saved = store.save(make_run(), {"report.html": b""})
    with pytest.raises(InputError, match=r"has no file 'trace.json'; it has: report.html"):
        store.read_file(saved, "trace.json")


@pytest.mark.parametrize("name", ["../evil", "a/b", "/etc/passwd", "..", ".", ""])
def test_a_file_cannot_leave_its_folder(store: Store, make_run, name: str):
    with pytest.raises(InputError, match="legal is a plain file name"):
        store.save(make_run(), {name: b"x"})
    assert store.runs() == []


def test_a_missing_source_file_stores_nothing(store: Store, make_run, tmp_path: Path):
    with pytest.raises(StoreError, match=r"gone.html: No such file"):
        store.save(make_run(), {"a.txt": b"x", "report.html": tmp_path / "gone.html"})
    assert store.runs() == []
    assert list((store.folder / "artifacts").iterdir()) == []


def test_the_same_run_is_stored_once(store: Store, make_run):
    run = store.save(make_run(), {"a.txt": b"first"})
    for again in ({}, {"a.txt": b"second"}):
        with pytest.raises(StoreError):
            store.save(run, again)
    assert store.read_file(store.load(run.id), "a.txt") == b"first"


def test_runs_are_listed_newest_first_and_filtered(store: Store, make_run):
    old = store.save(make_run(age_s=100))
    new = store.save(make_run(kind="check", target="train_100%.py", age_s=50))
    newest = store.save(make_run(target="TRAIN_1000.py"))
    assert [run.id for run in store.runs()] == [newest.id, new.id, old.id]
    assert [run.id for run in store.runs(limit=2)] == [newest.id, new.id]
    assert [run.id for run in store.runs(kind="bench")] == [newest.id, old.id]
    assert [run.id for run in store.runs(name="100%")] == [new.id]
    assert store.runs(kind="nothing") == []


def test_a_failed_run_is_listed_as_one_and_never_by_its_time(store: Store, make_run):
    measurement = {
        "median_s": 0.0783,
        "num_samples": 1,
        "failure": "step 3 raised ValueError: bad (three.py:40)",
    }
    failed = {"evidence": {"measurement": measurement}}
    store.save(make_run(kind="check", document=failed, age_s=2))
    store.save(
        make_run(kind="check", document={"evidence": {"measurement": None, "script": {"exit_code": 1}}})
    )
    assert [run.headline for run in store.runs()] == [
        "failed: the script ended with exit status 1",
        "failed in step 3: ValueError (three.py:40)",
    ]
    assert [run.median_s for run in store.runs()] == [None, None]


def test_ids_sort_by_time_and_never_repeat(make_run):
    runs = [make_run(age_s=100 - number) for number in range(100)]
    assert [run.id for run in runs] == sorted(run.id for run in runs)
    assert len({make_run().id for _ in range(200)}) == 200


def test_a_run_is_found_by_the_beginning_of_its_id_and_by_last(store: Store, make_run):
    store.save(make_run())
    newest = store.save(make_run(age_s=86400))
    assert store.load("last").id == newest.id
    assert store.load(newest.id[:-2]).id == newest.id
    assert store.load(newest.id).id == newest.id


def test_an_ambiguous_beginning_names_the_runs(store: Store, make_run):
    ids = [store.save(make_run(age_s=age_s)).id for age_s in range(7)]
    with pytest.raises(InputError) as caught:
        store.load("2")
    some = ", ".join(ids[:1:-1])
    assert str(caught.value) == f"'2': several runs begin like this: {some}, …; give more of the id"


@pytest.mark.parametrize("reference", ["nope", "", "%", "_", "2'; drop table runs; --"])
def test_an_unknown_run_is_refused_with_the_next_step(store: Store, make_run, reference: str):
    store.save(make_run())
    with pytest.raises(InputError, match=r"no such run in .*; pyrometer runs lists them"):
        store.load(reference)
    assert len(store.runs()) == 1


def test_last_of_an_empty_store_is_refused(store: Store):
    with pytest.raises(InputError, match="'last': no such run"):
        store.load("last")


def test_a_deleted_run_takes_its_files_along(store: Store, make_run):
    kept, gone = store.save(make_run(), {"a": b"1"}), store.save(make_run(), {"a": b"2"})
    store.delete([gone.id, "never stored"])
    assert [run.id for run in store.runs()] == [kept.id]
    assert [folder.name for folder in (store.folder / "artifacts").iterdir()] == [kept.id]


@pytest.mark.parametrize(
    ("rule", "kept_ages"),
    [
        ({}, [1, 20, 300, 4000]),
        ({"keep": 3}, [1, 20, 300]),
        ({"keep": 0}, []),
        ({"keep": 9}, [1, 20, 300, 4000]),
        ({"older_than_s": 200}, [1, 20]),
        ({"older_than_s": 1e300}, [1, 20, 300, 4000]),
        ({"keep": 3, "older_than_s": 200}, [1, 20, 300]),
        ({"keep": 1, "older_than_s": 200}, [1, 20]),
    ],
)
def test_pruning_keeps_the_newest_and_the_young(store: Store, make_run, rule: dict, kept_ages: list[int]):
    ids = {store.save(make_run(age_s=age_s), {"a": b"12345"}).id: age_s for age_s in (4000, 300, 20, 1)}
    planned = store.prune(**rule, dry_run=True)
    assert len(store.runs()) == 4
    done = store.prune(**rule)
    assert done == planned
    assert [ids[run.id] for run in store.runs()] == kept_ages
    assert done.freed_bytes == 5 * len(done.runs) == 5 * (4 - len(kept_ages))
    assert len(list((store.folder / "artifacts").iterdir())) == len(kept_ages)


def test_pruning_removes_what_killed_writers_left_and_spares_those_at_work(store: Store, make_run):
    saved = store.save(make_run(), {"a": b"1"})
    for name in ("20200101-000000-dead00", ".20200101-000000-dead01.partial", "20990101-000000-alive0"):
        (store.folder / "artifacts" / name).mkdir()
        (store.folder / "artifacts" / name / "a").write_bytes(b"123")
        if "dead" in name:
            os.utime(store.folder / "artifacts" / name, (0, time.time() - 7200))
    os.utime(store.folder / "artifacts" / saved.id, (0, 0))
    pruned = store.prune()
    assert pruned.orphans == [".20200101-000000-dead01.partial", "20200101-000000-dead00"]
    assert pruned.freed_bytes == 6
    left = {folder.name for folder in (store.folder / "artifacts").iterdir()}
    assert left == {saved.id, "20990101-000000-alive0"}


def test_pruning_gives_the_space_back(store: Store, make_run):
    for _ in range(5):
        store.save(make_run(document={"samples": "x" * 200_000}))
    before = (store.folder / "runs.db").stat().st_size
    store.prune(keep=0)
    assert (store.folder / "runs.db").stat().st_size < before / 5


def test_a_store_of_our_own_is_hidden_from_git_and_a_folder_of_the_user_is_not(tmp_path: Path):
    Store.open(tmp_path / "fresh" / ".pyrometer")
    assert (tmp_path / "fresh" / ".pyrometer" / ".gitignore").read_text() == "*\n"
    (tmp_path / "mine").mkdir()
    Store.open(tmp_path / "mine")
    assert not (tmp_path / "mine" / ".gitignore").exists()


def test_odd_folder_names_are_only_names(tmp_path: Path, make_run):
    folder = tmp_path / "a b?mode=ro#%41;ü"
    run = Store.open(folder).save(make_run())
    assert Store.open(folder).load("last").id == run.id
    assert (folder / "runs.db").is_file()


def test_a_folder_change_after_opening_does_not_move_the_store(
    tmp_path: Path, make_run, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    store = Store.open(".pyrometer")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.save(make_run(), {"a": b""})
    assert len(Store.open(tmp_path / ".pyrometer").runs()) == 1

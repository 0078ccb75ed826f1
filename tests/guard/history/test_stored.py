"""Histories in a store: reading, accepting, pruning, exporting, and what is refused."""

from __future__ import annotations

import csv
import json
import math
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pyrometer.cli.main import main
from pyrometer.errors import IncomparableError, InputError
from pyrometer.guard.check import GuardOptions
from pyrometer.guard.history.recording import adjacent_base, prove, record
from pyrometer.guard.history.stored import (
    accept,
    commits_between,
    conditions,
    prune,
    read_history,
    read_jobs,
    require_same_conditions,
)
from pyrometer.hardware.record import Environment
from pyrometer.record import from_dict, to_dict
from pyrometer.report.chapters import guard_history as words
from pyrometer.report.chinese import chinese
from pyrometer.report.guarding import history_document
from pyrometer.report.html import page
from pyrometer.report.markdown import render_document as markdown
from pyrometer.store.store import Store


def test_a_stored_history_has_its_change_until_it_is_proved_and_accepted(kept, keep, make_report, commit):
    timed, counted = sorted(read_history(kept).changes, key=lambda change: change.point.is_exact)
    assert (timed.state, counted.state) == ("to prove", "proved")
    assert timed.point.head_sha == commit(11)
    keep(kept, make_report(commit(10), commit(11), math.log(1.1), outcome="regressed"), "guard-proof")
    found = read_history(kept)
    assert found.to_prove == []
    assert len(found.standing) == 2
    assert found.self_checks.num_jobs == 21
    assert accept(kept, commit(11)[:6], "sums in fp32") == commit(11)
    assert read_history(kept).standing == []
    accept(kept, commit(11), None)
    assert len(read_history(kept).standing) == 2
    with pytest.raises(
        InputError, match="no change ends at a commit that begins like this; changes end at: 0b0b0b0b0"
    ):
        accept(kept, commit(5), "why")


def test_jobs_of_another_machine_are_left_out(kept, keep, make_report, commit):
    keep(kept, make_report(commit(20), commit(21), 0.0), torch="2.14.0")
    document = history_document(kept)
    assert (document.history.num_commits, document.num_elsewhere) == (1, 20)


def test_another_machine_is_refused_with_the_fields_that_differ(measured):
    before = from_dict(Environment, measured.ENVIRONMENT)
    after = from_dict(Environment, measured.ENVIRONMENT | {"torch": "2.14.0", "threads": 4})
    with pytest.raises(IncomparableError, match=r"torch: 2.13.0 and 2.14.0; threads: 2 and 4") as caught:
        require_same_conditions(before, after)
    assert "--restart" in str(caught.value)
    require_same_conditions(before, before)
    assert "driver" in conditions(before)


def test_old_commits_are_pruned_with_their_proofs(kept, keep, make_report, commit):
    keep(kept, make_report(commit(10), commit(11), 0.1, outcome="regressed"), "guard-proof")
    keep(kept, make_report(commit(17), commit(18), 0.0), "guard-proof")
    assert len(prune(kept, keep=5, dry_run=True).runs) == 16
    assert len(kept.ids()) == 22
    assert prune(kept, keep=5).num_kept == 5
    jobs = read_jobs(kept)
    assert [job.ends[1] for job in jobs.records] == [commit(number) for number in range(16, 21)]
    assert [job.ends for job in jobs.proofs] == [(commit(17), commit(18))]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Four commits, the newest first."""
    monkeypatch.chdir(tmp_path)
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q"], check=True)
    for number in range(4):
        subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", str(number)], check=True)
    return subprocess.run(
        ["git", "rev-list", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.split()


def test_a_commit_is_measured_against_the_nearest_that_is_recorded(
    tmp_path, repository, keep, make_report, measured
):
    newest, second, third, oldest = repository
    assert adjacent_base(tmp_path, newest, []) == second
    assert adjacent_base(tmp_path, newest, [third, oldest]) == third
    assert commits_between(tmp_path, third, newest) == [second, newest]
    assert commits_between(tmp_path, "nowhere", newest) == []
    with pytest.raises(InputError, match="the first commit"):
        adjacent_base(tmp_path, oldest, [])
    store = Store.open(tmp_path / ".pyrometer")
    keep(store, make_report(oldest, third, 0.0))
    asked = []

    def run(_folder, options):
        asked.append((options.base, options.head))
        return make_report(options.base, options.head, 0.0)

    here = from_dict(Environment, measured.ENVIRONMENT)
    options = GuardOptions(base="")
    record(tmp_path, options, store, here, run=run)
    record(tmp_path, replace(options, head=second), None, here, run=run)
    assert asked == [(third, newest), (third, second)]
    elsewhere = from_dict(Environment, measured.ENVIRONMENT | {"torch": "2.14.0"})
    with pytest.raises(IncomparableError):
        record(tmp_path, options, store, elsewhere, run=run)
    record(tmp_path, options, store, elsewhere, restart=True, run=run)
    assert asked[-1] == (second, newest)
    keep(store, make_report(third, newest, 0.3))
    (request,) = read_history(store, tmp_path).to_prove
    prove(tmp_path, options, request, run=run)
    assert asked[-1] == (third, newest)
    (change, _) = read_history(store, tmp_path).changes
    assert change.commits == [second, newest]
    assert change.named is None


@pytest.fixture
def here(kept, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYROMETER_STORE", str(kept.folder))
    return tmp_path


def test_verbs_show_accept_export_and_prune(here, kept, capsys, commit):
    assert main(["guard", "history"]) == 1
    shown = capsys.readouterr().out
    assert "1 regression proved and not accepted" in shown
    assert f"{commit(10)[:9]}..{commit(11)[:9]}" in shown
    assert "0 of 20 jobs alarmed" in shown
    assert main(["guard", "accept", commit(11)[:8], "--reason", "sums in fp32"]) == 0
    assert main(["guard", "history", "--json"]) == 0
    document = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert document["history"]["num_commits"] == 20
    assert document["history"]["to_prove"][0]["head_sha"] == commit(11)
    assert main(["guard", "export", "-o", "history.csv"]) == 0
    rows = list(csv.DictReader((here / "history.csv").read_text().splitlines()))
    assert len(rows) == 40
    assert float(rows[19]["chained"]) == pytest.approx(1.1, rel=1e-6)
    for name in ("history.json", "history.html"):
        assert main(["guard", "export", "-o", name]) == 0
    assert main(["guard", "export", "-o", "v1.2.bencher.json"]) == 0
    figures = json.loads((here / "v1.2.bencher.json").read_text())
    assert all(set(measure) >= {"value"} for measures in figures.values() for measure in measures.values())
    assert {row["benchmark"] for row in rows} == set(figures)
    assert main(["guard", "export", "-o", "v1.2.codspeed.json"]) == 0
    rounds = json.loads((here / "v1.2.codspeed.json").read_text())["benchmarks"]
    assert {one["uri"] for one in rounds} == set(figures)
    assert main(["guard", "export", "-o", "history.xml"]) == 2
    assert main(["guard", "accept", commit(11)]) == 2
    assert main(["guard", "prune", "--keep", "3"]) == 0
    assert "17 jobs deleted; 3 commits kept" in capsys.readouterr().out


def test_without_records_the_next_step_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Store.open(".pyrometer")
    assert main(["guard", "history"]) == 2
    assert "no commit is recorded; pyrometer guard record makes the first one" in capsys.readouterr().err


def test_the_page_draws_trends_and_is_known_in_chinese(kept, keep, make_report, commit):
    keep(kept, make_report(commit(20), commit(21), 0.0, trusted=False))
    keep(kept, make_report(commit(7), commit(40), 0.0))
    keep(kept, make_report(commit(20), commit(21), 0.0))
    accept(kept, commit(11), "sums in fp32")
    document = history_document(kept)
    text = page(document)
    assert text.count("<polyline") == 2
    assert 'class="estimate slower"' in text
    for sentence in (
        "1 change to prove", "21 recorded commits · since 000000000", "1 of 23 jobs alarmed", "accepted: sums in fp32",
        "left out: 1 job that alarmed at nothing: record those commits again",
        "left out: 1 job that no chain leads to: their base was not recorded",
    ):  # fmt: skip
        assert sentence.split(" · ")[0] in text
        assert chinese(sentence) is not None, sentence
    for sentence in (
        words.CHANGES_HOW,
        words.CHANGES_WOULD,
        words.TRENDS_HOW,
        words.TRENDS_WOULD,
        words.CHECKS_HOW,
        words.PAST_HOW,
    ):
        assert chinese(sentence) is not None, sentence
    assert "### Trends" in markdown("guard-history", to_dict(document))

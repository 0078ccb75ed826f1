from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner

from pyrometer.cli.main import main
from pyrometer.cli.saving import provenance, save_run, store_options
from pyrometer.errors import StoreError, UsageError
from pyrometer.hardware.record import Environment
from pyrometer.record import from_json
from pyrometer.report.run_documents import PruneDocument, RunsDocument
from pyrometer.store.run import Run
from pyrometer.store.store import Store

Save = Callable[..., Run]


@pytest.fixture
def save(measured: ModuleType) -> Save:
    """Puts a run into a store."""
    return lambda store, *arguments, **options: store.save(measured.measured_run(*arguments, **options))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.chdir(tmp_path)
    return Store.open(".pyrometer")


def fails(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a verb that must fail with exit code 2 and one line."""
    assert main(list(argv)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def prints(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a verb that must succeed and be silent on stderr."""
    assert main(list(argv)) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_runs_lists_a_line_per_run_the_newest_first(store: Store, save: Save, capsys):
    older, newer = (
        save(store, age_s=60),
        save(store, 0.5, kind="check", target="train.py", commit=(None, None)),
    )
    lines = prints(capsys, "runs").splitlines()
    assert len(lines) == 3
    assert newer.id in lines[1]
    assert "500 ms (495 ms–505 ms)" in lines[1]
    assert lines[2].startswith(older.id)
    assert "model.py:work" in lines[2]
    assert "012345678+" in lines[2]


def test_runs_as_json_is_one_document(store: Store, save: Save, capsys):
    run = save(store)
    document = from_json(RunsDocument, prints(capsys, "runs", "--json"))
    assert document.runs == [run.summary()]


def test_runs_can_be_narrowed(store: Store, save: Save, capsys):
    save(store, age_s=60)
    check = save(store, kind="check", age_s=30)
    save(store)
    assert len(json.loads(prints(capsys, "runs", "--json", "--limit", "2"))["runs"]) == 2
    assert [run["id"] for run in json.loads(prints(capsys, "runs", "--json", "--kind", "check"))["runs"]] == [
        check.id
    ]


def test_an_empty_store_says_what_to_do(store: Store, capsys):
    assert "no runs; pyrometer bench TARGET makes one" in prints(capsys, "runs")
    assert json.loads(prints(capsys, "runs", "--json"))["runs"] == []


def test_a_missing_store_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    for argv in (
        ["runs"],
        ["show", "last"],
        ["compare", "a", "b"],
        ["export", "last", "-o", "x.json"],
        ["prune"],
    ):
        assert "no runs are stored here; pass --store DIR" in fails(capsys, *argv)
    assert list(tmp_path.iterdir()) == []


def test_the_store_comes_from_the_flag_then_the_variable_then_the_file(
    save: Save, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    ids = {name: save(Store.open(tmp_path / name)).id for name in ("flag", "variable", "file")}
    (tmp_path / "pyproject.toml").write_text('[tool.pyrometer]\nstore = "file"\n')
    assert ids["file"] in prints(capsys, "runs")
    monkeypatch.setenv("PYROMETER_STORE", "variable")
    assert ids["variable"] in prints(capsys, "runs")
    assert ids["flag"] in prints(capsys, "runs", "--store", "flag")


def test_show_says_where_a_run_comes_from_and_renders_it(store: Store, save: Save, capsys):
    run = save(store)
    out = prints(capsys, "show", "last")
    assert out.startswith(f"run {run.id} · ")
    assert "012345678+ · pyrometer bench model.py:work" in out
    assert "2.00 ms" in out


def test_show_prints_the_short_answer_whose_last_line_says_what_prints_all(store: Store, save: Save, capsys):
    run = save(store)
    brief = prints(capsys, "show", "last").splitlines()
    command, _, rest = brief[-1].removeprefix("Run").strip().partition(" · ")
    assert rest == "--full prints every chapter"
    whole = prints(capsys, *command.split()[1:], "--full").splitlines()
    assert (command.split()[2], brief[0]) == (run.id, whole[0])
    assert any(line.startswith("Machine") for line in whole)
    assert not any(line.startswith("Machine") for line in brief)


def test_show_as_json_is_the_document_of_the_verb(store: Store, save: Save, capsys):
    run = save(store, target="größe.py:work")
    assert json.loads(prints(capsys, "show", run.id[:-1], "--json")) == run.document


def test_show_as_markdown_and_html(store: Store, save: Save, capsys, tmp_path: Path):
    save(store)
    assert "2.00 ms" in prints(capsys, "show", "last", "--markdown")
    assert prints(capsys, "show", "last", "--html", "out.html") == ""
    assert "2.00 ms" in (tmp_path / "out.html").read_text()
    assert prints(capsys, "show", "last", "-o", "new/folder/out.html") == ""
    assert (tmp_path / "new/folder/out.html").read_bytes() == (tmp_path / "out.html").read_bytes()
    (tmp_path / "mine.html").write_text("mine")
    assert "is there already" in fails(capsys, "show", "last", "--html", "mine.html")


def test_show_has_one_format_at_a_time(store: Store, save: Save, capsys):
    save(store)
    assert "exclude each other" in fails(capsys, "show", "last", "--json", "--markdown")


def test_show_of_an_unknown_run_names_the_next_step(store: Store, capsys):
    assert "'zzz': no such run" in fails(capsys, "show", "zzz")


def test_compare_writes_a_page(store: Store, save: Save, capsys, tmp_path):
    a, b = save(store, 0.002, age_s=60), save(store, 0.001)
    prints(capsys, "compare", a.id, b.id, "-o", str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2.00× faster" in text
    assert "not yet proven" in text
    assert a.id in text


def test_compare_of_one_target_at_two_commits_tells_how_to_run_both(store: Store, save: Save, capsys):
    a, b = save(store, age_s=60), save(store)
    out = prints(capsys, "compare", a.id, b.id)
    assert (
        "git worktree add ../before 0123456789ab && pyrometer bench ../before/model.py:work --vs model.py:work"
        in out
    )


def test_compare_with_a_script_asks_for_a_factory_as_only_these_run_in_turns(
    store: Store, save: Save, capsys, measured: ModuleType
):
    evidence = {"measurement": measured.measurement(0.002), "script": {"exit_code": 0}}
    a, b = save(store, age_s=60), save(store, target="train.py --steps 5", document={"evidence": evidence})
    out = prints(capsys, "compare", a.id, b.id)
    assert "pyrometer bench model.py:work --vs train.py:FACTORY" in out


def test_compare_across_machines_is_refused_with_the_fields_that_differ(
    store: Store, save: Save, capsys, measured: ModuleType
):
    a = save(store, age_s=60)
    b = save(
        store, environment={"cpu": {**measured.ENVIRONMENT["cpu"], "model": "Epyc"}, "fingerprint": "beef"}
    )
    message = fails(capsys, "compare", a.id, b.id)
    assert "Xeon" in message
    assert "Epyc" in message


def test_compare_needs_measurements(store: Store, save: Save, capsys):
    a, b = save(store, None, kind="calibration", age_s=60), save(store)
    assert f"run {a.id} (calibration) holds no measurement" in fails(capsys, "compare", a.id, b.id)


@pytest.mark.parametrize("name", ["out.json", "out.md", "out.html", "OUT.HTML", "new/folder/out.md"])
def test_export_writes_the_format_of_the_extension(
    store: Store, save: Save, capsys, tmp_path: Path, name: str
):
    run = save(store)
    assert prints(capsys, "export", "last", "-o", name) == ""
    content = (tmp_path / name).read_text()
    if name.endswith("json"):
        assert json.loads(content) == run.document
    else:
        assert "2.00 ms" in content


def test_export_overwrites_only_with_force(store: Store, save: Save, capsys, tmp_path: Path):
    save(store)
    (tmp_path / "out.json").write_text("mine")
    assert "overwrite it by pyrometer export --force" in fails(capsys, "export", "last", "-o", "out.json")
    assert (tmp_path / "out.json").read_text() == "mine"
    prints(capsys, "export", "last", "-o", "out.json", "--force")
    assert json.loads((tmp_path / "out.json").read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == [".pyrometer", "out.json"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.txt", "the extension '.txt' names no format; legal are .json, .md, .html"),
        ("out", "the extension '' names no format"),
        ("file/out.json", "cannot be written (Not a directory)"),
        ("folder.json", "folder.json: is a folder; name a file in it"),
    ],
)
def test_export_refuses_what_it_cannot_write(
    store: Store, save: Save, capsys, tmp_path: Path, *, name: str, message: str
):
    save(store)
    (tmp_path / "file").touch()
    (tmp_path / "folder.json").mkdir()
    assert message in fails(capsys, "export", "last", "-o", name)


def test_prune_says_what_it_would_remove_and_then_removes_it(store: Store, save: Save, capsys):
    old, new = save(store, age_s=86400 * 40), save(store)
    planned = prints(capsys, "prune", "--older-than", "30d", "--dry-run")
    assert f"would remove run {old.id}" in planned
    assert new.id not in planned
    assert len(store.runs()) == 2
    done = from_json(PruneDocument, prints(capsys, "prune", "--older-than", "30d", "--json"))
    assert [run.id for run in done.pruned.runs] == [old.id]
    assert [run.id for run in store.runs()] == [new.id]
    assert "removed 1 runs" in prints(capsys, "prune", "--keep", "0")


def test_prune_without_a_rule_deletes_no_run(store: Store, save: Save, capsys):
    save(store)
    assert "removed 0 runs" in prints(capsys, "prune")
    assert len(store.runs()) == 1


@click.command()
@click.option("--exit-code", type=int)
@click.option("--fail", is_flag=True)
@store_options
@click.pass_obj
def measuring(
    environment: Environment, store_location: str | None, *, exit_code: int | None, fail: bool
) -> int:
    run = save_run(
        store_location,
        kind="bench",
        target="t",
        document={"target": "t"},
        environment=environment,
        artifacts={"a.txt": b"1"},
    )
    click.echo(json.dumps(provenance(run)))
    if fail:
        raise UsageError("of the verb itself")
    if exit_code is not None:
        click.get_current_context().exit(exit_code)
    return 1


Measure = Callable[..., tuple[Any, dict[str, Any]]]


@pytest.fixture
def measure(measured: ModuleType) -> Measure:
    """Runs the verb; gives its result and the document that it printed."""
    environment = msgspec.convert(measured.ENVIRONMENT, Environment)

    def measuring_with(*argv: str) -> tuple[Any, dict[str, Any]]:
        result = CliRunner().invoke(measuring, list(argv), obj=environment, standalone_mode=False)
        return result, json.loads(result.stdout)

    return measuring_with


def test_a_verb_saves_its_result_with_command_and_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: ModuleType, measure: Measure
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pyrometer", "bench", "t"])
    result, printed = measure()
    assert result.return_value == 1
    run = Store.open(".pyrometer", create=False).load("last")
    assert printed == {"run_id": run.id, "created": run.created_at, "command": ["pyrometer", "bench", "t"]}
    assert run.document == {"target": "t", **printed}
    assert (run.kind, run.target, run.fingerprint, run.commit_sha) == ("bench", "t", "f00d", None)
    assert msgspec.convert(run.environment, Environment) == msgspec.convert(measured.ENVIRONMENT, Environment)
    assert [artifact.name for artifact in run.artifacts] == ["a.txt"]


def test_a_clock_that_was_set_back_costs_no_run_and_no_order_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: ModuleType, measure: Measure
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pyrometer", "bench", "t"])
    _, _ = measure()
    later = Store.open(".pyrometer").save(measured.measured_run(age_s=-86400))
    result, printed = measure()
    assert result.return_value == 1
    assert f"note: the clock was set back: run {later.id}, which was saved before" in result.stderr
    assert result.stderr.count("\n") == 1
    store = Store.open(".pyrometer")
    assert store.load("last").id == printed["run_id"]
    assert [run.number for run in store.runs()] == [3, 2, 1]
    result, printed = measure()
    assert result.stderr == ""
    assert store.load("last").id == printed["run_id"]


def test_no_store_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: Measure):
    monkeypatch.chdir(tmp_path)
    result, printed = measure("--no-store")
    assert result.return_value == 1
    assert printed["run_id"] is None
    assert printed["created"].endswith("Z")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [[], ["--exit-code", "0"]])
def test_a_result_that_cannot_be_saved_is_printed_and_the_error_comes_after_it(
    tmp_path: Path, more: list[str], measure: Measure
):
    (tmp_path / "file").touch()
    result, printed = measure("--store", str(tmp_path / "file"), *more)
    assert printed["run_id"] is None
    assert isinstance(result.exception, StoreError)
    assert "pass --store DIR or --no-store" in str(result.exception)


def test_an_error_of_the_verb_itself_goes_before_that_of_the_store(tmp_path: Path, measure: Measure):
    (tmp_path / "file").touch()
    result, _ = measure("--store", str(tmp_path / "file"), "--fail")
    assert isinstance(result.exception, UsageError)


def test_store_and_no_store_exclude_each_other():
    result = CliRunner().invoke(measuring, ["--store", "x", "--no-store"], standalone_mode=False)
    assert isinstance(result.exception, UsageError)

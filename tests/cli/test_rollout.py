"""`pyrometer rollout`: its words, its documents and its exit codes."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from rollouts import counts

from pyrometer.cli.main import main
from pyrometer.monitor.export import server as pages
from pyrometer.report.schema import schema_of
from pyrometer.rollout.ledger import open_ledger
from pyrometer.rollout.observed import NEW, OLD, Reported


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(capsys, *words):
    code = main(["rollout", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def start(capsys, *words, name="perception"):
    return run(capsys, "start", name, "--old", "v1", "--new", "v2", *words)


def report(new, old, name="perception", epoch=0):
    sent = [Reported(epoch=epoch, arm=arm, reporter="a", counts=one) for arm, one in ((NEW, new), (OLD, old))]
    open_ledger(".pyrometer").report(name, 1, sent)


def test_a_version_that_does_harm_is_taken_back_and_why_is_told(capsys, tmp_path):
    assert start(capsys, "--min-time", "0s")[0] == 0
    code, out, _ = run(capsys, "status", "perception")
    assert (code, "running at 1 %" in out) == (3, True)
    report(counts(1000, 60), counts(99_000, 200))
    code, out, _ = run(capsys, "watch", "perception", "--every", "1ms")
    assert code == 1
    assert out.startswith("perception: roll back, share 0 %: errors: ")
    code, out, _ = run(capsys, "status", "perception", "-o", "page.html")
    assert code == 1
    assert "rolled back" in out.splitlines()[0]
    page = (tmp_path / "page.html").read_text()
    assert ">Course of the tests<" not in page  # one look is no course
    assert "rolled back" in page


def test_the_document_keeps_its_contract(capsys):
    start(capsys, "--threshold", "p99=25ms")
    report(counts(300), counts(29_000, 3))
    run(capsys, "watch", "perception", "--once")
    _, out, _ = run(capsys, "status", "perception", "--json")
    document = json.loads(out)
    jsonschema.validate(document, schema_of("rollout-status"))
    assert {"stage", "share", "state", "tests", "decisions"} <= document.keys()
    assert (document["stage"], document["share"], document["state"]) == (1, 0.01, "running")
    assert [test["metric"] for test in document["tests"]] == ["errors", "latency", "above-p99"]
    assert all(
        {"metric", "estimate", "ci_low", "ci_high", "e_value", "outcome"} <= test.keys()
        for test in document["tests"]
    )
    assert document["decisions"][0]["reason"] == "v1 → v2: first stage"


def test_gates_pauses_and_aborts(capsys):
    start(capsys, "--gate", "1%", "--min-time", "0s")
    report(counts(2000), counts(190_000))
    _, out, _ = run(capsys, "watch", "perception", "--once")
    assert out.startswith("perception: wait, share 1 %")
    assert run(capsys, "advance", "perception", "--reason", "seen")[0] == 0
    _, out, _ = run(capsys, "watch", "perception", "--once")
    assert out.startswith("perception: promote, share 5 %")
    code, _, err = run(capsys, "advance", "perception")
    assert (code, "only evidence moves it on" in err) == (2, True)
    assert run(capsys, "pause", "perception")[0] == 0
    assert "paused at 5 %" in run(capsys, "status")[1]
    assert run(capsys, "abort", "perception", "--reason", "other plans")[0] == 0
    code, out, _ = run(capsys, "watch", "perception")
    assert code == 1
    _, out, _ = run(capsys, "status", "perception", "--full")
    assert all(word in out for word in ("seen", "other plans", "aborted"))


def test_each_lever_has_its_rollout(capsys):
    assert start(capsys, "--lever", "compile", "--lever", "int8")[0] == 0
    report(counts(30, not_finite=3), counts(3000), name="perception/int8")
    code, out, _ = run(capsys, "watch", "perception", "--once")
    assert code == 1
    assert (
        out
        == "perception/int8: roll back, share 0 %: 3 outputs that are not finite of 30, the old version has none\n"
    )
    assert "perception/compile  compile off → compile on  running at 1 %" in run(capsys, "status")[1]


def test_show_opens_a_rollout_like_a_run(capsys, tmp_path):
    start(capsys)
    report(counts(1000, 60), counts(99_000, 200))
    run(capsys, "watch", "perception", "--once")

    def shown(*words):
        assert main(["show", *words]) == 0
        return capsys.readouterr().out

    assert "rolled back" in shown("perception").splitlines()[0]
    assert json.loads(shown("perception", "--json"))["decisions"][-1]["action"] == "roll back"
    assert "## rolled back" in shown("perception", "--markdown")
    shown("perception", "-o", "shown.html")
    assert "rolled back" in (tmp_path / "shown.html").read_text()
    assert main(["show", "perceptoin"]) == 2
    assert "'perceptoin': no such run" in capsys.readouterr().err


def test_a_plan_from_a_file(capsys, tmp_path):
    (tmp_path / "plan.toml").write_text(
        'old = "v1"\nnew = "v2"\nalpha = 0.01\nmin_samples = 50\nagreement = 0.02\n'
        '[[metrics]]\nname = "detections"\nkind = "events"\nworse = "less"\nmargin = 1.1\n'
    )
    assert run(capsys, "start", "perception", "--plan", "plan.toml")[0] == 0
    plan = open_ledger(".pyrometer").read("perception").plan
    assert (plan.alpha, plan.min_samples) == (0.01, 50)
    assert [metric.name for metric in plan.metrics] == ["detections", "errors", "latency", "disagreed"]


def test_other_machines_are_served_where_a_token_is_set(capsys, monkeypatch):
    start(capsys)
    served = []

    class Server(pages.MetricsServer):
        def __init__(self, address, port, shown, *, token):
            super().__init__(address, port, shown, token=token)
            served.append((address, token))

    monkeypatch.setattr(pages, "MetricsServer", Server)
    monkeypatch.setenv("PYROMETER_ROLLOUT_TOKEN", "0123456789abcdef")
    code, _, err = run(capsys, "watch", "perception", "--once", "--host", "0.0.0.0", "--port", "0")
    assert code == 3
    assert re.search(r"http://127.0.0.1:\d+/verdict", err)
    assert served == [("0.0.0.0", "0123456789abcdef")]
    monkeypatch.setenv("PYROMETER_ROLLOUT_TOKEN", "short")
    assert "got 5 characters" in run(capsys, "watch", "perception", "--once", "--port", "0")[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("start", "x"), "which version is old? pass --old VERSION"),
        (("start", "x", "--old", "a", "--new", "a"), "two different versions"),
        (("start", "x", "--old", "a", "--new", "b", "--stages", "5%,1%"), "rising shares"),
        (("start", "x", "--old", "a", "--new", "b", "--threshold", "20ms"), "NAME=DURATION"),
        (("start", "x", "--old", "a", "--new", "b", "--plan", "plan.toml"), "cannot be read as TOML"),
        (("watch", "perceptoin"), "there is none"),
        (("watch", "perception", "--every", "soon"), "is not a duration"),
        (("watch", "perception", "--host", "0.0.0.0", "--port", "0"), "set PYROMETER_ROLLOUT_TOKEN"),
        (("watch", "perception", "--host", "127.0.0.1"), "pass --port too"),
        (("watch", "perception", "--host", "192.0.2.1x", "--port", "0"), "set PYROMETER_ROLLOUT_TOKEN"),
    ],
)
def test_bad_words_are_told_in_one_line(capsys, tmp_path, words, said):
    start(capsys)
    (tmp_path / "plan.toml").write_text("old = \n")
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    (tmp_path / "plan.toml").write_text("shades = 3\n")
    assert "no such setting" in run(capsys, "start", "x", "--plan", "plan.toml")[2]

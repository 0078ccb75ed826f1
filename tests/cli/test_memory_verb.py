"""`pyrometer memory` through the real command line: workloads, scripts, snapshots, limits, what is refused."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
from types import SimpleNamespace

import jsonschema
import pytest

from pyrometer.cli.main import main
from pyrometer.cli.memory_profile import _Budget, _predicted
from pyrometer.memory.prediction.errors import NotPredictableError
from pyrometer.memory.profile import MemoryProfile, PredictedMemory
from pyrometer.report.schema import schema_of

CONTRACT = {
    "peak_bytes", "ledger_bytes", "predicted", "timeline", "at_peak", "scaling", "fits", "leak", "advice",
}  # fmt: skip
LEDGER = {
    "parameters", "gradients", "optimizer", "master", "activations", "inputs", "temporaries", "workspace", "cache",
    "unknown",
}  # fmt: skip
WORK = """
import torch
from torch import nn
import pyrometer as pm

kept = []

def work():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    batches = [(torch.randn(32, 64), torch.randn(32, 64))]
    return pm.Training(model, nn.functional.mse_loss, optimizer, batches)

def leaking():
    model = nn.Linear(64, 64)
    def step():
        loss = model(torch.randn(32, 64)).pow(2).mean()
        kept.append(loss)
    return pm.Call(step)

def inference():
    return pm.Inference(nn.Linear(64, 64), torch.randn(32, 64))

def raises():
    def fail():
        raise ValueError("no such split")
    return pm.Call(fail)
"""
SCRIPT = """
import sys, torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(40):
    loss = model(torch.randn(32, 64)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", round(losses[-1], 4))
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("programs")
    (place / "work.py").write_text(WORK)
    (place / "script.py").write_text(SCRIPT)
    block = {"size": 2048, "requested_size": 2000, "state": "active_allocated", "frames": []}
    segment = {
        "device": 0, "address": 4096, "total_size": 2097152, "allocated_size": 2048, "active_size": 2048,
        "requested_size": 2000, "stream": 0, "segment_type": "small", "blocks": [
            {**block, "address": 4096},
            {"address": 6144, "size": 2095104, "requested_size": 0, "state": "inactive", "frames": []},
        ],
    }  # fmt: skip
    (place / "tiny.pickle").write_bytes(
        pickle.dumps({"segments": [segment], "device_traces": [[]]}, protocol=4)
    )
    return place


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def profiled(folder):
    asked = ["work.py:work", "--json", "--leaks", "30", "--predict", "batch=64", "--fit", "1MiB,2MiB"]
    printed = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        assert main(["memory", *asked]) == 0
    printed.seek(0)
    return json.load(printed)


def test_json_holds_the_contract_and_fits_its_schema(profiled):
    jsonschema.validate(profiled, schema_of("memory"))
    profile = profiled["evidence"]["memory"]
    assert set(profile) >= CONTRACT
    assert set(profile["ledger_bytes"]) == LEDGER
    assert sum(profile["ledger_bytes"].values()) == profile["peak_bytes"]
    assert set(profile["at_peak"][0]) >= {"site", "module", "bytes", "count"}
    assert profile["predicted"]["peak_bytes"] == pytest.approx(profile["peak_bytes"], rel=0.05)
    assert profile["leak"]["verdict"] in {"stable", "allocator warm-up"}
    assert {law["category"] for law in profile["scaling"]} >= {"activations"}
    assert [fit["budget_bytes"] for fit in profile["fits"]] == [2**20, 2**21]
    assert profile["fits"][0]["max_batch"] < profile["fits"][1]["max_batch"]
    assert profiled["what_if"][0]["settings"]["batch"] == "64"


def test_a_run_is_stored_and_compared(folder, profiled, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["show", profiled["run_id"], "--full"]) == 0
    assert "Ledger" in capsys.readouterr().out
    assert (
        main(["memory", "work.py:inference", "--leaks", "0", "--diff", profiled["run_id"], "--no-store"]) == 2
    )
    assert "--no-store there are no runs" in capsys.readouterr().err
    assert main(["memory", "work.py:inference", "--leaks", "0", "--diff", profiled["run_id"]]) == 0
    shown = capsys.readouterr().out
    assert "Against the earlier profile" in shown
    assert "another program: Sequential training before" in " ".join(shown.split())


@pytest.mark.slow
def test_a_leak_is_named_with_its_line_and_exceeds_its_limit(folder, call):
    ended = call(folder, "memory", "work.py:leaking", "--json", "--limit", "growth=0", "--no-store")
    assert ended.returncode == 1, ended.stderr
    document = json.loads(ended.stdout)
    assert document["evidence"]["memory"]["leak"]["verdict"] == "leak"
    (site,) = document["evidence"]["memory"]["leak"]["sites"]
    assert "kept" in site["holder"]
    assert site["graph_bytes"] > 0
    assert "per step, 0 B are allowed" in document["over_limit"][0]


@pytest.mark.exhaustive
def test_growth_that_cannot_be_told_is_no_success(folder, call):
    ended = call(folder, "memory", "work.py:leaking", "--leaks", "0", "--limit", "growth=0", "--no-store")
    assert ended.returncode == 3
    assert "could not be decided" in ended.stderr


def test_a_page_is_written(folder, call, tmp_path):
    page = tmp_path / "memory.html"
    ended = call(
        folder, "memory", "work.py:inference", "--leaks", "0", "--no-store", "-o", str(page), "--limit", "peak=1KiB"
    )  # fmt: skip
    assert ended.returncode == 1
    assert "Where the bytes go" in page.read_text()
    assert "1.00 KiB are allowed" in ended.stdout


@pytest.mark.exhaustive
def test_a_plan_is_made_for_training_only(folder, call):
    ended = call(
        folder,
        "memory",
        "work.py:work",
        "--leaks",
        "0",
        "--plan",
        "900KiB",
        "--budget",
        "3s",
        "--json",
        "--no-store",
    )
    assert ended.returncode == 0, ended.stderr
    plan = json.loads(ended.stdout)["plan"]
    assert plan["budget_bytes"] == 900 * 1024
    assert plan["planned"]["peak_bytes"] <= plan["baseline"]["peak_bytes"]
    refused = call(folder, "memory", "work.py:inference", "--plan", "1MiB", "--no-store")
    assert refused.returncode == 2
    assert "it goes with a training workload" in refused.stderr


@pytest.mark.slow
def test_a_script_runs_unchanged(folder, call):
    ended = call(folder, "memory", "script.py", "--json", "--no-store", "--", "3")
    assert ended.returncode == 3, ended.stderr
    document = json.loads(ended.stdout)
    assert document["evidence"]["memory"]["ledger_bytes"]["parameters"] == (64 * 64 + 64) * 4
    assert "loss " in ended.stderr  # its own output, since stdout is the document's


def test_a_snapshot_is_read(folder, call):
    ended = call(folder, "memory", "tiny.pickle", "--json")
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    jsonschema.validate(document, schema_of("memory-snapshot"))
    assert document["evidence"]["snapshot"]["fragmentation"]["at_end"]["reserved_bytes"] == 2097152
    assert document["evidence"]["snapshot"]["oom"] == []
    assert "Fragmentation" in call(folder, "memory", "tiny.pickle", "--full").stdout
    assert "What holds the peak" in call(folder, "memory", "tiny.pickle").stdout
    assert "Against the other" not in call(folder, "memory", "tiny.pickle", "--diff", "tiny.pickle").stderr


def test_a_hostile_snapshot_is_refused_and_runs_nothing(call, tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    (tmp_path / "evil.pickle").write_bytes(pickle.dumps(Hostile()))
    ended = call(tmp_path, "memory", "evil.pickle")
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "made").exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["work.py:raises"], 4, "no such split"),
        (["work.py:work", "--predict", "batches=3"], 2, "--predict: got 'batches=3'; legal are batch=…"),
        (["work.py:work", "--predict", "batch=0"], 2, "whole number of at least 1"),
        (["work.py:work", "--fit", "24"], 2, "--fit: '24' is not a size"),
        (["work.py:work", "--limit", "peak=lots"], 2, "--limit peak: 'lots' is not a size"),
        (["tiny.pickle", "--predict", "batch=3"], 2, "--predict: tiny.pickle is a snapshot"),
        (["tiny.pickle", "--leaks", "3"], 2, "compare two by --diff"),
        (["script.py", "--plan", "1GiB"], 2, "--plan: script.py runs as it is"),
        (["missing.pickle"], 2, "missing.pickle"),
        (["work.py:work", "--diff", "nothing", "--no-store"], 2, "no such file"),
    ],
)
def test_what_cannot_be_is_one_line(capsys, arguments, code, said):
    assert main(["memory", *arguments]) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_prediction_that_fails_leaves_the_rest_of_the_report(monkeypatch):
    def fails(_work, **settings):
        if settings.get("batch") == 64:
            raise NotPredictableError("the router needs the values of its scores")
        return PredictedMemory(peak_bytes=settings["batch"], ledger_bytes={})

    monkeypatch.setattr("pyrometer.memory.prediction.predict.predict_memory", fails)
    question = SimpleNamespace(what_if=[{"batch": 64}, {"batch": 16}])
    profile = MemoryProfile(name="moe", device="cpu", peak_bytes=8, ledger_bytes={})
    said: list[str] = []
    answers, told = _predicted(None, question, profile, _Budget(None), lambda _share, what: said.append(what))
    assert said == ["predicting batch=64, 1 of 2", "predicting batch=16, 2 of 2"]
    assert [answer.peak_bytes for answer in answers] == [16]
    (note,) = told.notes
    assert note.startswith(
        "--predict batch=64 could not be answered: cannot be predicted without running: the router"
    )


def test_a_budget_that_is_spent_leaves_predictions_out_and_says_so():
    question = SimpleNamespace(what_if=[{"batch": 64}])
    profile = MemoryProfile(name="moe", device="cpu", peak_bytes=8, ledger_bytes={})
    answers, told = _predicted(None, question, profile, _Budget(0.0), lambda _share, _what: None)
    assert answers == []
    assert told.notes == [
        "--predict batch=64 was not answered: the budget was spent; repeat the command with a larger --budget"
    ]

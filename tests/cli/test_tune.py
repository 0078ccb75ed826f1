"""`pyrometer tune` from the command line, on programs so small that all of it fits into a test."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from pyrometer.errors import UserProgramError
from pyrometer.report.schema import schema_of
from pyrometer.tuning.recipe.recipe import load_recipe

PROGRAM = """
import torch
from torch import nn
import pyrometer as pm

def deep():
    torch.manual_seed(0)
    layers = [part for _ in range(60) for part in (nn.Linear(16, 16), nn.Dropout(), nn.Dropout(), nn.Dropout())]
    return pm.Inference(nn.Sequential(*layers), torch.randn(4, 16))

def other():
    return pm.Inference(nn.Linear(16, 16), torch.randn(4, 16))

def fails():
    raise ValueError("no weights here")
"""
QUICK = ("--only", "drop_dropout", "--no-store", "--budget", "60s")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    (folder / "model.py").write_text(PROGRAM)
    return folder


@pytest.fixture(autouse=True)
def without_diagnosis(monkeypatch):
    """What findings advise has tests of its own, and takes longer than the search of one lever."""
    monkeypatch.setattr("pyrometer.tuning.tune.findings_of", lambda *_: ([], None))


@pytest.mark.slow
def test_a_search_ends_in_a_recipe_that_is_proved_applied_and_refused_elsewhere(call, folder, monkeypatch):
    for name, short in {"PAIR_S": 3.0, "NUM_PAIRS": 2, "VERIFYING_S": 6.0, "APPLIED_S": 0.3}.items():
        monkeypatch.setattr(f"pyrometer.tuning.recipe.verifying.{name}", short)
    search = ("tune", "model.py:deep", "--latency", "1us", "--json", *QUICK[:-1], "120s")
    ended = call(folder, *search)
    document = json.loads(ended.stdout)
    jsonschema.validate(document, schema_of("tune"))
    (lever,) = document["levers"]
    assert (lever["name"], lever["outcome"]) == ("drop_dropout", "kept")
    assert lever["max_abs_error"] == 0.0
    assert document["final"]["outcome"] == "faster"
    (goal,) = document["targets"]
    assert goal["met"] is False
    assert "is the most left" in goal["left"]
    assert ended.returncode == 1, "a goal is missed"
    recipe = load_recipe(folder / "model-deep.recipe.toml")
    assert (
        2 <= recipe.proof.num_processes <= 8
    )  # fewer where other work takes the time, more while it is undecided
    assert recipe.proof.ci_high < 1

    recipe_flags = ("--recipe", "model-deep.recipe.toml", "--no-store")
    applied = call(folder, "tune", "model.py:deep", *recipe_flags, "--apply")
    assert "applied, with the same results" in applied.stdout
    assert "--verify" in applied.stdout
    assert applied.returncode == 0

    proof = ("--recipe", "model-deep.recipe.toml", "--verify", "--no-store")
    verified = call(folder, "tune", "model.py:deep", *proof)
    assert re.search(r"faster|undecided: 0\.\d", verified.stdout)  # wide intervals beside other work
    assert len(verified.stdout.splitlines()) <= 25
    assert verified.returncode == (3 if "undecided" in verified.stdout.splitlines()[0] else 0)

    refused = call(folder, "tune", "model.py:other", *proof)
    assert refused.returncode == 2
    assert "for another model" in refused.stderr

    timed = call(
        folder, "bench", "model.py:deep", "--recipe", "model-deep.recipe.toml", "--budget", "1s", "--no-store"
    )
    assert timed.returncode == 0

    def unproved(*_):
        raise UserProgramError("no time for a proof")

    monkeypatch.setattr("pyrometer.tuning.tune.confirm", unproved)
    resumed = json.loads(call(folder, *search, "--resume").stdout)
    assert resumed["levers"][0]["ratio"] == lever["ratio"]  # decided before, not tried again


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "no TARGET"),
        (("model.py:deep", "--only", "compil"), 2, "did you mean 'compile'"),
        (("model.py:deep", "--stages", "basic,best"), 2, "'best' is none; legal are basic"),
        (("model.py:deep", "--latency", "0s"), 2, "latency"),
        (("model.py:deep", "--verify", "--recipe", "absent.toml"), 2, "absent.toml: cannot be read"),
        (("absent.py:deep",), 2, "absent.py"),
        (("model.py:fails", *QUICK), 4, "no weights here"),
    ],
)
def test_wrong_use_is_told_in_one_line(call, folder, arguments, code, said):
    ended = call(folder, "tune", *arguments)
    assert ended.returncode == code
    assert said in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert ended.stdout == ""


def test_all_levers_are_listed(call, folder):
    listed = call(folder, "tune", "--list").stdout
    assert "channels_last" in listed
    document = json.loads(call(folder, "tune", "--list", "--json").stdout)
    jsonschema.validate(document, schema_of("tune-list"))

"""A recipe carries its proof, is applied to the model that it was made for, and to no other."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest
import torch
from msgspec.structs import replace
from torch import nn

from pyrometer.errors import IncomparableError, InputError
from pyrometer.hardware.environment import read_environment
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.families.layout.channels_last import ChannelsLast
from pyrometer.tuning.outcome import LeverOutcome
from pyrometer.tuning.recipe.making import dropped_levers, kept_files, proved_levers
from pyrometer.tuning.recipe.recipe import Proof, Recipe, RecipeWarning, artefact_of, load_recipe
from pyrometer.tuning.recipe.signature import signature_of
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import CaseError, Limits
from pyrometer.tuning.trials.laboratory import Laboratory
from pyrometer.workload.target import parse_target

X = torch.randn(2, 3, 12, 12)


def convolutions(channels=8):
    layers = [
        nn.Conv2d(3, channels, 3),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Dropout(),
        nn.Conv2d(channels, 4, 3),
    ]
    model = nn.Sequential(*layers)
    nn.init.uniform_(model[1].running_mean)
    return model


def recipe_of(model, *levers, kind="inference", artefacts=None):
    configuration = tuple(LeverChoice(lever=name) for name in levers)
    outcomes = [
        LeverOutcome(name=name, outcome="kept", ratio=0.8, ci_low=0.7, ci_high=0.9, confidence=0.95)
        for name in levers
    ]
    outcomes.append(LeverOutcome(name="compile", outcome="slower", ratio=2.0, reason="guards cost more"))
    return Recipe(
        levers=proved_levers(configuration, outcomes, artefacts or {}),
        dropped=dropped_levers(outcomes),
        target="model.py:workload",
        kind=kind,
        commit=None,
        signature=signature_of(model, [X]),
        proof=None,
        tolerance=0.03,
        environment=read_environment(),
        created="2026-01-01T00:00:00+00:00",
    )


def test_it_is_read_as_it_was_written(tmp_path):
    recipe = recipe_of(convolutions(), "fold_batchnorm", "channels_last")
    read = load_recipe(recipe.write(tmp_path / "r.toml"))
    assert read.place == str(tmp_path / "r.toml")
    assert replace(read, place=None) == recipe
    text = (tmp_path / "r.toml").read_text()
    assert 'outcome = "slower"' in text
    assert "guards cost more" in text


def test_it_changes_a_copy_and_leaves_the_model_alone():
    model = convolutions().train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    applied = recipe_of(model, "fold_batchnorm", "drop_dropout", "channels_last").apply(model)
    assert model.training
    assert model[0].weight.is_contiguous()
    assert isinstance(model[1], nn.BatchNorm2d)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    expected = model.eval()(X)
    changed = applied(X)
    assert changed.requires_grad is False
    torch.testing.assert_close(changed, expected.detach(), rtol=1e-4, atol=1e-5)
    assert not any(isinstance(module, (nn.BatchNorm2d, nn.Dropout)) for module in applied.modules())


def test_it_prints_what_it_brings_and_the_lines_to_paste():
    recipe = recipe_of(convolutions(), "channels_last")
    assert str(recipe) == "model.py:workload: no lever is proved to be faster; 1 lever tried or left out"
    proof = Proof(outcome="faster", ratio=0.5, ci_low=0.4, ci_high=0.6, confidence=0.95, num_processes=4)
    told = str(replace(recipe, proof=proof)).splitlines()
    assert told[0] == "model.py:workload: 2.00× faster (1.67–2.50) with channels_last"
    assert "model = model.to(memory_format=torch.channels_last)" in told


def test_other_weights_are_legal_and_another_model_is_refused_with_what_differs():
    recipe = recipe_of(convolutions(), "channels_last")
    recipe.apply(convolutions())
    with pytest.raises(IncomparableError, match=r"num_parameters: \d+ and \d+"):
        recipe.apply(convolutions(channels=16))


def test_another_machine_is_warned_of_with_the_way_to_prove_it_there():
    recipe = recipe_of(convolutions(), "channels_last")
    elsewhere = replace(recipe, environment=replace(recipe.environment, torch="2.9.0"))
    with pytest.warns(RecipeWarning, match=r"\(torch\).*--verify"):
        elsewhere.apply(convolutions())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recipe.apply(convolutions())


def test_a_recipe_for_training_is_no_recipe_for_a_model():
    with pytest.raises(InputError, match="for a training step"):
        recipe_of(convolutions(), kind="training").apply(convolutions())


def test_settings_of_the_process_hold_within_and_are_restored():
    recipe = recipe_of(convolutions())
    recipe = replace(recipe, levers=[*recipe.levers])
    threads = torch.get_num_threads()
    configuration = (LeverChoice(lever="threads", parameters={"num": threads + 1}),)
    from pyrometer.tuning.recipe.recipe import RecipeLever

    lever = RecipeLever(
        lever="threads", parameters=dict(configuration[0].parameters), fix_class="exact", stage="device"
    )
    with replace(recipe, levers=[lever]).settings():
        assert torch.get_num_threads() == threads + 1
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("levers", [("drop_dropout", "channels_last"), ("cast_bf16",)])
def test_the_lines_to_paste_do_the_same(levers):
    model = convolutions().eval()
    recipe = recipe_of(model, *levers)
    scope = {"model": convolutions(), "torch": torch, "inputs": (X,)}
    scope["model"].load_state_dict(model.state_dict())
    exec(recipe.python(), scope)
    torch.testing.assert_close(scope["output"].float(), recipe.apply(model)(X))


def flushes():
    return float(torch.tensor([1e-40]) * 1.0) == 0.0


@pytest.mark.parametrize("before", [False, True])
def test_the_process_flushes_denormals_only_while_its_settings_are_held(before):
    model = nn.Linear(12, 4)
    nn.init.constant_(model.bias, 1e-40)
    recipe = recipe_of(model, "flush_denormals")
    recipe.apply(model)
    assert not flushes()
    torch.set_flush_denormal(before)
    try:
        with recipe.settings():
            assert flushes()
        assert flushes() is before
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("name", ["int8_static", "shape_buckets"])
def test_a_lever_that_reads_inputs_is_not_given_zeros(name):
    recipe = recipe_of(convolutions(), name)
    with pytest.raises(InputError, match=rf"{name} .*recipe.apply\(model, inputs\)"):
        recipe.apply(convolutions())


@pytest.mark.parametrize(
    ("error", "is_legal"),
    [({"max_rel": 0.6}, True), ({"max_rel": 0.9}, False), ({"mismatch": "NaN"}, False), ({}, False)],
)
def test_files_may_be_as_far_off_as_was_proved_which_a_metric_had_decided(error, is_legal):
    figures = {"ratio": 0.5, "ci_low": 0.4, "ci_high": 0.6, "confidence": 0.95, "num_processes": 4}
    proof = Proof(outcome="faster", max_rel_error=0.4, **figures)
    recipe = replace(recipe_of(convolutions(), "channels_last"), proof=proof)
    assert recipe._is_as_proved(CaseError(label="the example inputs", **error)) is is_legal


@pytest.fixture
def with_file(tmp_path):
    (tmp_path / "r.tune").mkdir()
    path = tmp_path / "r.tune" / "model.bin"
    path.write_bytes(b"weights")
    recipe = recipe_of(
        convolutions(), "channels_last", artefacts={"channels_last": [artefact_of(path, tmp_path)]}
    )
    return recipe.write(tmp_path / "r.toml"), path


def test_files_beside_it_have_to_be_those_that_were_proved(with_file):
    recipe, path = with_file
    assert load_recipe(recipe).levers[0].artefacts[0].size_bytes == 7
    path.write_bytes(b"other")
    with pytest.raises(InputError, match="its hash differs"):
        load_recipe(recipe)
    path.unlink()
    with pytest.raises(InputError, match="is missing"):
        load_recipe(recipe)


def test_a_path_that_leads_out_of_its_folder_is_not_opened(with_file):
    recipe, _ = with_file
    recipe.write_text(recipe.read_text().replace("r.tune/model.bin", "../../etc/passwd"))
    with pytest.raises(InputError, match="lies outside"):
        load_recipe(recipe)


@pytest.mark.parametrize(
    ("text", "said"),
    [("[", "not a recipe"), ("a = 1", "not a Recipe record"), (None, "cannot be read")],
)
def test_what_is_no_recipe_is_told_in_one_line(tmp_path, text, said):
    path = tmp_path / "r.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        load_recipe(path)
    assert "\n" not in str(caught.value)


def test_a_newer_format_asks_for_a_newer_pyrometer(tmp_path):
    path = replace(recipe_of(convolutions()), format=99).write(tmp_path / "r.toml")
    with pytest.raises(InputError, match="update pyrometer"):
        load_recipe(path)


@pytest.fixture
def found_ready(monkeypatch):
    """What is handed to a lever as ready when it is applied, and the weight that it then puts into the model."""
    seen = SimpleNamespace(ready=None, scale=1.0)

    def apply(_self, subject, _parameters):
        seen.ready = dict(subject.ready)
        with torch.no_grad():
            next(subject.model.parameters()).mul_(seen.scale)

    monkeypatch.setattr(ChannelsLast, "apply", apply)
    return seen


def test_what_lies_beside_a_recipe_is_used_again(with_file, found_ready):
    place, path = with_file
    load_recipe(place).apply(convolutions(), X)
    assert found_ready.ready == {"channels_last": [path]}
    assert 'place = "' not in load_recipe(place).write(place).read_text()


def test_a_file_that_was_changed_after_the_recipe_was_read_is_refused(with_file, found_ready):
    place, path = with_file
    recipe = load_recipe(place)
    path.write_bytes(b"others!")
    with pytest.raises(InputError, match="its hash differs"):
        recipe.apply(convolutions(), X)
    assert found_ready.ready is None


def test_what_is_loaded_and_computes_other_numbers_is_refused(with_file, found_ready):
    place, _ = with_file
    found_ready.scale = 1.5
    with pytest.raises(InputError, match="computes other numbers"):
        load_recipe(place).apply(convolutions(), X)


USED_AGAIN = """
import sys, time, torch, pyrometer as pm
from pathlib import Path
from torch import nn
from pyrometer.tuning.levers.runtimes import exported
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 16), nn.Tanh()).eval()
x = torch.randn(2, 16)
recipe = pm.load_recipe(sys.argv[1])
exported.export = None  # exporting again would fail
print(float((recipe.apply(model, x)(x) - model(x)).abs().max()) < 1e-5)
"""


@pytest.mark.slow
def test_a_recipe_of_a_search_is_applied_without_exporting_again(tmp_path):
    program = (
        "import torch, pyrometer as pm\nfrom torch import nn\n"
        "def work():\n    torch.manual_seed(0)\n"
        "    return pm.Inference(nn.Sequential(nn.Linear(16, 16), nn.Tanh()), torch.randn(2, 16))\n"
    )
    (tmp_path / "program.py").write_text(program)
    spec = parse_target(f"{tmp_path / 'program.py'}:work").spec
    laboratory = Laboratory(protocol.Source(spec=spec), tmp_path, Limits())
    choice = LeverChoice(lever="onnxruntime")
    with laboratory.open(()) as side:
        signature = laboratory.survey(side, []).signature
    with laboratory.open((choice,)):
        artefacts = kept_files((choice,), laboratory.files_of((choice,)), tmp_path / "r.tune")
    recipe = replace(recipe_of(convolutions(), "onnxruntime", artefacts=artefacts), signature=signature)
    place = recipe.write(tmp_path / "r.toml")
    run = subprocess.run(
        [sys.executable, "-c", USED_AGAIN, str(place)], capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "True", run.stderr


@pytest.mark.exhaustive
def test_a_folder_for_a_recipes_files_goes_with_the_process(tmp_path):
    code = (
        "from pyrometer.tuning.recipe.recipe import _folder; folder = _folder(None);"
        "(folder / 'weights').write_bytes(b'x'); print(folder)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert str(tmp_path) in said
    assert list(tmp_path.glob("pyrometer-recipe-*")) == []

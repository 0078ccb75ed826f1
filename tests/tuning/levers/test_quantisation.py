"""What levers of quantisation do to weights, graphs and channels, and that a metric decides whether they stay."""

from __future__ import annotations

import textwrap

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.tuning.levers.applying import apply_levers, not_applied, subject_of
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.families.quantisation.int8_static import NUM_CALIBRATIONS, calibration_inputs
from pyrometer.tuning.levers.families.quantisation.linears import int8_layers
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Limits
from pyrometer.tuning.trials.laboratory import Laboratory
from pyrometer.workload.target import parse_target

pytestmark = pytest.mark.slow
KINDS = ["int8_dynamic", pytest.param("int8_weight_only", marks=pytest.mark.exhaustive)]
"""They import torchao, whose objects every later search for who holds a tensor would walk."""

CLASSIFIER = """
import functools
import torch
from torch import nn
import pyrometer as pm

CENTRES = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))

def samples(num, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 8, (num,), generator=generator)
    return CENTRES[labels] + 0.3 * torch.randn(num, 64, generator=generator), labels

@functools.cache
def trained(width):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 8))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(60):
        x, y = samples(128, step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model.eval()

def roomy():
    return pm.Inference(trained(128), samples(32, 1000)[0])

def narrow():
    return pm.Inference(trained(4), samples(32, 1000)[0])

def accuracy(model):
    x, y = samples(512, 2000)
    return (model(x).argmax(-1) == y).float().mean()
"""


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    place = tmp_path_factory.mktemp("classifier") / "classifier.py"
    place.write_text(textwrap.dedent(CLASSIFIER))
    return place


def program():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.Linear(64, 10)).eval()
    return pm.Inference(model, torch.randn(16, 64))


def changed(work, name, folder, **parameters):
    subject = subject_of(work, folder)
    apply_levers(subject, (LeverChoice(lever=name, parameters=parameters),))
    return subject


@pytest.mark.parametrize("name", KINDS)
def test_weights_of_sizeable_layers_take_a_quarter_of_the_bytes(name, tmp_path):
    model = changed(program(), name, tmp_path).model
    quantised = int8_layers(model)
    assert [type(layer) for layer in quantised] == [nn.Linear, nn.Linear]
    for layer in quantised:
        held = sum(getattr(layer.weight, part).nbytes for part in layer.weight.tensor_data_names)
        assert held < layer.weight.numel() * 4 / 3.5
    assert type(model[3].weight.data) is torch.Tensor  # 10 features are too few


@pytest.mark.exhaustive
def test_only_the_dynamic_one_quantises_activations(tmp_path):
    dynamic = changed(program(), "int8_dynamic", tmp_path).model
    weight_only = changed(program(), "int8_weight_only", tmp_path).model
    assert dynamic[0].weight.act_quant_kwargs is not None
    assert weight_only[0].weight.act_quant_kwargs is None


@pytest.mark.parametrize("name", KINDS)
def test_the_pasted_lines_do_the_same(name, tmp_path):
    work, pasted = program(), program()
    expected = changed(work, name, tmp_path).model
    exec("\n".join(find_lever(name).lines({})), {"model": pasted.model, "torch": torch})
    assert [type(layer.weight.data) for layer in pasted.model[::2]] == [
        type(layer.weight.data) for layer in expected[::2]
    ]
    with torch.inference_mode():
        torch.testing.assert_close(pasted.model(work.inputs), expected(work.inputs), rtol=0, atol=0)


@pytest.mark.parametrize("name", KINDS)
def test_settings_of_the_process_stay(name, tmp_path):
    from torch._inductor import config

    before, precision = config.save_config_portable(), torch.get_float32_matmul_precision()
    changed(program(), name, tmp_path)
    assert config.save_config_portable() == before
    assert torch.get_float32_matmul_precision() == precision


def test_channels_are_gone_and_what_reads_them_is_cut_to_match(tmp_path):
    model = changed(program(), "prune_channels", tmp_path, share=0.5).model
    assert [tuple(layer.weight.shape) for layer in model if isinstance(layer, nn.Linear)] == [
        (64, 64),
        (32, 64),
        (10, 32),
    ]


def test_channels_are_seen_to_be_gone_also_once_a_runtime_took_the_models_place(tmp_path):
    subject, choice = (
        changed(program(), "prune_channels", tmp_path, share=0.5),
        LeverChoice(lever="prune_channels"),
    )
    subject.model = nn.Identity()
    assert not_applied(subject, (choice,)) is None
    assert "no layer holds fewer" in not_applied(subject_of(program(), tmp_path), (choice,))


def test_calibration_sees_what_is_given_and_others_like_it(tmp_path):
    work = program()
    inputs = calibration_inputs(subject_of(work, tmp_path))
    assert len(inputs) == NUM_CALIBRATIONS
    assert torch.equal(inputs[0].args[0], work.inputs)
    assert len({float(each.args[0].sum()) for each in inputs}) == NUM_CALIBRATIONS


@pytest.mark.exhaustive
def test_calibration_draws_from_a_source_that_makes_its_own(tmp_path):
    drawn = iter(range(100))
    work = pm.Inference(nn.Linear(4, 4), lambda: torch.full((2, 4), float(next(drawn))))
    values = [float(each.args[0][0, 0]) for each in calibration_inputs(subject_of(work, tmp_path))]
    assert values == sorted(set(values))


def test_static_ranges_quantise_the_graph_which_takes_a_compiler_to_pay(tmp_path):
    work = program()
    with torch.inference_mode():
        reference = work.model(work.inputs).clone()
    subject = changed(work, "int8_static", tmp_path)
    assert subject.fixed_shapes
    assert find_lever("int8_static").needs == {"compile"}
    with torch.inference_mode():
        error = (subject.model.eval()(work.inputs) - reference).abs().max() / reference.abs().max()
    assert 0 < error < 0.1
    assert "no int8 kernel" in not_applied(subject, (LeverChoice(lever="int8_static"),))


@pytest.mark.exhaustive
@pytest.mark.filterwarnings(
    "ignore:To copy construct from a tensor:UserWarning"
)  # of Inductor's own lowering
def test_compiled_with_frozen_parameters_it_runs_int8_kernels(tmp_path):
    work = program()
    reference = work.model(work.inputs).detach()
    choices = (LeverChoice(lever="int8_static"), LeverChoice(lever="compile", parameters={"freezing": True}))
    subject = subject_of(work, tmp_path)
    apply_levers(subject, choices)
    with subject.finished().open() as session:
        session.activate()
        output = session.step(session.prepare())
        assert not_applied(subject, choices) is None
    assert (output - reference).abs().max() < 0.1 * reference.abs().max()


def judged(classifier, name, folder, choice):
    source = protocol.Source(spec=parse_target(f"{classifier}:{name}").spec)
    metric = f"{classifier.name}:accuracy"
    laboratory = Laboratory(source, folder, Limits(), metric=metric, cwd=str(classifier.parent))
    with laboratory.open(()) as baseline:
        laboratory.keep_reference(baseline)
    with laboratory.open((choice,)) as candidate:
        assert candidate.opened.not_applied is None
        return laboratory.check(candidate)


def test_int8_that_keeps_the_accuracy_passes(classifier, tmp_path):
    numerics = judged(classifier, "roomy", tmp_path, LeverChoice(lever="int8_dynamic"))
    assert numerics.refused is None
    assert numerics.reference_metric > 0.95
    assert numerics.metric >= 0.99 * numerics.reference_metric


def test_pruning_that_costs_accuracy_is_refused(classifier, tmp_path):
    choice = LeverChoice(lever="prune_channels", parameters={"share": 0.5})
    numerics = judged(classifier, "narrow", tmp_path, choice)
    assert "the metric fell" in numerics.refused
    assert numerics.metric < 0.99 * numerics.reference_metric

"""Export: of any batch where the model allows that, one line where it cannot be exported, and files that are reused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import UserProgramError
from pyrometer.tuning.levers.applying import subject_of
from pyrometer.tuning.levers.runtimes.exported import ExportedRuntime, weights_hash
from pyrometer.tuning.levers.runtimes.exporting import export, form_of, library


class DataDependent(nn.Module):
    """Takes a way that depends on values."""

    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


class FixedBatch(nn.Module):
    """Adds rows of the batch that it was written for."""

    def forward(self, x):
        return x + torch.ones(4, 8)


def exported(model, inputs, tmp_path, **options):
    subject = subject_of(pm.Inference(model, inputs), tmp_path)
    return export(subject, form_of(subject), contiguous=True, **options)


@pytest.mark.parametrize("batch", [1, 4])
def test_the_batch_may_vary_where_the_model_allows_it(batch, tmp_path):
    program, shapes = exported(nn.Linear(8, 2), torch.randn(batch, 8), tmp_path)
    assert not shapes.are_fixed
    assert program.module()(torch.randn(7, 8))[0].shape == (7, 2)


def test_shapes_are_fixed_where_it_does_not(tmp_path):
    assert exported(FixedBatch(), torch.randn(4, 8), tmp_path).shapes.are_fixed


@pytest.mark.parametrize("batch", [1, 4])
def test_shapes_are_fixed_where_the_runtime_takes_no_others(batch, tmp_path):
    program, shapes = exported(nn.Linear(8, 2), torch.randn(batch, 8), tmp_path, any_batch=False)
    assert shapes.are_fixed
    assert program.module()(torch.randn(batch, 8))[0].shape == (batch, 2)


@pytest.mark.parametrize("batch", [1, 4])
def test_a_model_that_depends_on_values_fails_in_one_line(batch, tmp_path):
    with pytest.raises(UserProgramError, match=r"^torch\.export cannot take this model: \w+: [^\n]+$"):
        exported(DataDependent(), torch.randn(batch, 8), tmp_path)


def test_the_root_of_a_chain_is_told_without_colours():
    failed = RuntimeError("\x1b[96mstep 3/3\x1b[0m failed\nmore")
    failed.__cause__ = KeyError("aten.foo")
    with pytest.raises(UserProgramError) as caught, library("the exporter"):
        raise failed
    assert str(caught.value) == (
        "the exporter cannot take this model: RuntimeError: step 3/3 failed (KeyError: 'aten.foo')"
    )


class Written(ExportedRuntime):
    """Counts how often files are written."""

    name, title, why = "a", "", ""
    maker = "a 1"
    count = 0

    def made_with(self):
        return self.maker

    def write(self, exported, folder, parameters):
        self.count += 1
        (folder / "model.bin").write_bytes(b"1")
        return [folder / "model.bin"]

    def opened(self, path):
        raise AssertionError("nothing is called")

    def not_applied(self, subject, parameters):
        return None


def test_files_are_reused_for_the_same_weights_and_maker_only(tmp_path):
    written, model = Written(), nn.Linear(8, 2)

    def store(ready, made_with="a 1", inputs=None):
        subject = subject_of(pm.Inference(model, torch.randn(4, 8) if inputs is None else inputs), tmp_path)
        subject.ready, written.maker = ready, made_with
        written.apply(subject, {})
        return subject.artefacts

    files = store({})
    assert [path.name for path in files["a"]] == ["model.bin", "a.json"]
    assert store(files) == files
    assert written.count == 1
    assert store(files, inputs=torch.randn(9, 8)) == files
    assert written.count == 1
    store(files, made_with="a 2")
    assert written.count == 2
    files = store(files)
    with torch.no_grad():
        model.weight[0, 0] += 1
    store(files)
    assert written.count == 4


def test_the_hash_tells_weights_modules_and_layouts_apart():
    conv = nn.Conv2d(3, 4, 3)
    plain = weights_hash(conv)
    assert plain == weights_hash(conv)
    assert plain != weights_hash(conv.to(memory_format=torch.channels_last))
    assert weights_hash(nn.Sequential(nn.ReLU())) != weights_hash(nn.Sequential(nn.GELU()))

"""The form of a call: flat tensors of any arguments, and the output of flat tensors."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.tuning.levers.runtimes.form import CallForm, FlatModel, RuntimeModel, runtime_of
from pyrometer.tuning.levers.runtimes.shapes import Shapes, TensorShape
from pyrometer.workload.inputs import Arguments


class Structured(nn.Module):
    """Takes a keyword and a nested argument, and returns a dict with a constant and one tensor twice."""

    def forward(self, x, mask=None, *, pair=None, flag=True):
        y = x * 2 if flag else x
        y = y if mask is None else y * mask
        return {"y": y, "again": (y, x + pair[0]), "constant": 3, "none": None}


def form_of_call(*args, **kwargs):
    model = Structured()
    return model, CallForm(model, Arguments(args, kwargs), model(*args, **kwargs))


def test_a_flat_model_computes_each_tensor_once_and_the_form_restores_the_output():
    x, pair = torch.randn(2, 3), (torch.randn(2, 3), 1)
    model, form = form_of_call(x, pair=pair)
    flat = form.flat((x,), {"pair": pair})
    assert [id(tensor) for tensor in flat] == [id(x), id(pair[0])]
    results = FlatModel(model, form)(*flat)
    assert len(results) == len(form.outputs) == 2
    output, reference = form.output(results), model(x, pair=pair)
    assert torch.equal(output["y"], reference["y"])
    assert output["again"][0] is output["y"]
    assert torch.equal(output["again"][1], reference["again"][1])
    assert (output["constant"], output["none"]) == (3, None)


def test_arguments_may_be_given_by_position_or_by_name_in_any_order():
    x, mask, pair = torch.randn(2), torch.ones(2), (torch.zeros(2), 1)
    _, form = form_of_call(x, mask, pair=pair)
    wanted = [id(x), id(mask), id(pair[0])]
    for args, kwargs in (
        ((x,), {"mask": mask, "pair": pair}),
        ((), {"pair": pair, "mask": mask, "x": x}),
    ):
        assert [id(tensor) for tensor in form.flat(args, kwargs)] == wanted


@pytest.mark.parametrize(
    ("args", "changed", "said"),
    [
        ((torch.ones(2),), {"flag": False}, "which is fixed in it"),
        ((torch.ones(2),), {"mask": torch.ones(2)}, "the model was exported with x, pair, flag"),
        ((torch.ones(2),), {"pair": [torch.zeros(2), 1]}, "nested in another way"),
        ((torch.ones(2),), {"pair": (0.5, 1)}, "where the model was exported with"),
        ((torch.ones(2),), {"other": 1}, "do not fit the model"),
        ((2.0,), {}, "where the model was exported with"),
    ],
)
def test_what_the_exported_model_would_ignore_is_refused(args, changed, said):
    given = {"pair": (torch.zeros(2), 1), "flag": True}
    _, form = form_of_call(torch.ones(2), **given)
    with pytest.raises(InputError, match=said):
        form.flat(args, {**given, **changed})


def test_a_runtime_that_returns_fewer_tensors_is_refused():
    _, form = form_of_call(torch.ones(2), pair=(torch.zeros(2), 1))
    with pytest.raises(InputError, match="returned 1 tensors, where the model returns 2"):
        form.output([torch.ones(2)])


def shapes_of(tensor, *, varies, contiguous=True):
    return Shapes([TensorShape.of(tensor, varies=varies, contiguous=contiguous)])


def test_other_batches_pass_where_the_batch_may_vary():
    shapes = shapes_of(torch.ones(2, 3), varies=True)
    x = torch.ones(5, 3)
    assert shapes.laid_out([x])[0] is x
    assert not shapes.are_fixed
    assert shapes_of(torch.ones(2, 3), varies=False).are_fixed


@pytest.mark.parametrize(
    ("tensor", "varies"),
    [
        (torch.ones(2, 4), True),
        (torch.ones(3, 3), False),
        (torch.ones(2, 3, dtype=torch.float64), True),
        (torch.ones(3), True),
        (torch.ones(2, 3, device="meta"), True),
    ],
)
def test_other_shapes_dtypes_and_devices_are_refused(tensor, varies):
    with pytest.raises(InputError, match=r"input 1: got .* the model was exported for torch\.float32"):
        shapes_of(torch.ones(2, 3), varies=varies).laid_out([tensor])


def test_batches_that_differ_among_inputs_are_refused():
    shape = TensorShape.of(torch.ones(2, 3), varies=True, contiguous=True)
    with pytest.raises(InputError, match=r"input 2: .*one size of the batch for all"):
        Shapes([shape, shape]).laid_out([torch.ones(4, 3), torch.ones(5, 3)])


def test_tensors_are_copied_only_into_another_layout():
    image = torch.randn(2, 3, 4, 4)
    last = image.to(memory_format=torch.channels_last)
    for contiguous, example in ((True, last), (False, image)):
        laid = shapes_of(example, varies=True, contiguous=contiguous).laid_out([last])[0]
        assert laid.is_contiguous()
        assert torch.equal(laid, image)
    assert shapes_of(last, varies=True, contiguous=False).laid_out([last])[0] is last


def test_a_runtime_is_opened_at_the_first_call_and_once():
    model, x, pair = Structured(), torch.ones(2), (torch.zeros(2), 1)
    form = CallForm(model, Arguments((x,), {"pair": pair}), model(x, pair=pair))
    shapes = Shapes([TensorShape.of(t, varies=True, contiguous=True) for t in form.tensors])
    opened = []

    def runtime():
        opened.append(torch.get_num_threads())
        return lambda tensors: [tensors[0] * 2, tensors[0] + tensors[1]], "session"

    adapter = RuntimeModel(form, shapes, runtime)
    assert runtime_of(adapter) is None
    given = torch.ones(3, requires_grad=True)
    for _ in range(2):
        assert adapter(given, pair=(torch.ones(3), 1))["again"][1].tolist() == [2.0] * 3
    assert (len(opened), runtime_of(adapter), runtime_of(nn.ReLU())) == (1, "session", None)

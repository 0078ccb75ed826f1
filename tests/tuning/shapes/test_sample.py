"""Samples of shapes are read strictly, and inputs made of them stay like the example."""

from __future__ import annotations

import pytest
import torch

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.axes import declare_axes
from pyrometer.tuning.shapes.sample import (
    drawn_like,
    inputs_like,
    read_sample,
    sizes_in,
    varying_dims,
)


def test_lines_become_shapes(tmp_path):
    path = tmp_path / "sample.jsonl"
    path.write_text('{"x": [2, 5], "y": []}\n\n{"x": [2, 7]}\n')
    assert read_sample(path) == [{"x": (2, 5), "y": ()}, {"x": (2, 7)}]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{x: 1}", "no JSON"),
        ("[1, 2]", r"got \[1, 2\]"),
        ("{}", "got {}"),
        ('{"x": 5}', "the shape of 'x' is 5"),
        ('{"x": [0, 5]}', r"the shape of 'x' is \[0, 5\]"),
        ('{"x": [true]}', r"the shape of 'x' is \[true\]"),
        ('{"x": [1.5]}', r"the shape of 'x' is \[1\.5\]"),
    ],
)
def test_a_bad_line_is_told_with_its_file_and_number(tmp_path, line, told):
    path = tmp_path / "sample.jsonl"
    path.write_text('{"x": [1]}\n' + line + "\n")
    with pytest.raises(InputError, match=rf"sample\.jsonl:2: .*{told}.*legal is"):
        read_sample(path)


def test_a_file_without_shapes_or_none_at_all_is_told(tmp_path):
    path = tmp_path / "sample.jsonl"
    path.write_text("\n")
    with pytest.raises(InputError, match="holds no shapes"):
        read_sample(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_sample(tmp_path / "none.jsonl")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        read_sample(path)


def test_sizes_are_counted_per_call():
    axes = declare_axes(lambda x, y=None: x, {"x": {0: "rows", 1: "n"}, "y": {0: "n"}})
    counts = sizes_in(axes, [{"x": (2, 5)}, {"x": (2, 5), "y": (5,)}, {"x": (3, 5)}])
    assert counts == {(2, 5): 2, (3, 5): 1}
    with pytest.raises(InputError, match="call 2: dimension 0 of y is 6, but n is 5"):
        sizes_in(axes, [{"x": (2, 5)}, {"x": (2, 5), "y": (6,)}])
    with pytest.raises(
        InputError, match="call 1: has the inputs y, none of which tells rows; give the shape of x"
    ):
        sizes_in(axes, [{"y": (5,)}])
    with pytest.raises(InputError, match=r"call 1: x has the shape \[2\], without the dimension 1 "):
        sizes_in(axes, [{"x": (2,)}])


def test_what_varies_together_has_one_name():
    sample = [
        {"ids": (4, 10), "mask": (4, 10), "image": (3, 8)},
        {"ids": (4, 12), "mask": (4, 12), "image": (3, 9)},
    ]
    assert varying_dims(sample) == {"ids": {1: "ids.1"}, "mask": {1: "ids.1"}, "image": {1: "image.1"}}


@pytest.mark.parametrize(
    "example",
    [
        torch.tensor([[5, 900, 17]]),
        torch.tensor([[True, False]]),
        torch.randn(2, 3),
        torch.randn(2, 3, dtype=torch.float64),
        torch.randn(2, 2, dtype=torch.complex64),
        torch.zeros(0, 3),
    ],
)
def test_values_stay_within_those_of_the_example(example):
    tensor = drawn_like(example, (3, 40), torch.Generator().manual_seed(0))
    assert tensor.shape == (3, 40)
    assert (tensor.dtype, tensor.device) == (example.dtype, example.device)
    if example.numel():
        assert set(tensor.flatten().tolist()) <= set(example.flatten().tolist())


def test_gradients_are_wanted_where_the_example_wants_them():
    example = torch.randn(2, 3, requires_grad=True)
    tensor = drawn_like(example, (2, 9), torch.Generator())
    assert tensor.requires_grad
    assert tensor.is_leaf


def test_other_inputs_stay_and_unknown_ones_are_told():
    example = {"x": torch.zeros(2, 3), "scale": 2.0}
    inputs = inputs_like(example, {"x": (2, 5)}, torch.Generator())
    assert inputs["scale"] == 2.0
    assert example["x"].shape == (2, 3)
    with pytest.raises(InputError, match=r"shapes for 'z', which is no tensor.*those are x"):
        inputs_like(example, {"z": (1,)}, torch.Generator())
    with pytest.raises(InputError, match="shapes for 'scale'"):
        inputs_like(example, {"scale": (1,)}, torch.Generator())

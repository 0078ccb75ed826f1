"""Models that take a mask are told what is padding."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.axes import declare_axes, parameters_of
from pyrometer.tuning.shapes.buckets import ShapeBuckets
from pyrometer.tuning.shapes.checking import PaddingError
from pyrometer.tuning.shapes.masks import DETECT, Mask, find_mask, masking_for

SAMPLE = [{"x": (2, size, 8)} for size in (8, 16)]


def check(runner, model, *args, **kwargs):
    """What buckets give and what the model gives."""
    torch.testing.assert_close(runner(*args, **kwargs), model(*args, **kwargs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("parameter", "kind"),
    [
        ("attention_mask", "keep"),
        ("mask", "keep"),
        ("src_key_padding_mask", "ignore"),
        ("padding_mask", "ignore"),
        ("lengths", "lengths"),
    ],
)
def test_a_mask_is_recognised_by_the_name_of_its_parameter(parameter, kind):
    assert find_mask(["x", parameter]) == Mask(parameter, kind)


def test_other_parameters_are_no_masks():
    assert find_mask(["x", "masked", "scale"]) is None


def test_attention_is_masked_without_being_asked(models):
    model = models.Attention().eval()
    runner = ShapeBuckets(model, {"x": {1: "length"}}, sample=SAMPLE, backend="eager")
    for size in (3, 8, 11, 16):
        check(runner, model, torch.randn(2, size, 8))
    assert runner.statistics().num_graphs == 2


def test_attention_whose_mask_is_withheld_is_refused(models):
    runner = ShapeBuckets(
        models.Attention().eval(), {"x": {1: "length"}}, sample=SAMPLE, mask=None, backend="eager"
    )
    with pytest.raises(PaddingError, match="it needs a mask"):
        runner(torch.randn(2, 5, 8))


def test_a_mask_of_the_wrong_meaning_is_told(models):
    runner = ShapeBuckets(
        models.Attention().eval(),
        {"x": {1: "length"}},
        sample=SAMPLE,
        mask=Mask("mask", "ignore"),
        backend="eager",
    )
    with pytest.raises(PaddingError, match="'mask' does not mean 'ignore'"):
        runner(torch.randn(2, 5, 8))


@pytest.mark.parametrize("by_position", [True, False])
def test_the_callers_own_mask_is_padded_along(models, by_position):
    model = models.Attention().eval()
    runner = ShapeBuckets(model, {"x": {1: "length"}}, sample=SAMPLE, backend="eager")
    x = torch.randn(2, 5, 8)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    if by_position:
        check(runner, model, x, mask)
    else:
        check(runner, model, x, mask=mask)


def test_a_declared_mask_is_padded_with_what_it_ignores(models):
    model = models.Attention().eval()
    dims = {"x": {1: "length"}, "mask": {1: "length"}}
    runner = ShapeBuckets(model, dims, sample=[{"x": (2, 16, 8), "mask": (2, 16)}], backend="eager")
    check(runner, model, torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.bool))


def test_a_declared_mask_that_is_true_at_padding_is_padded_with_true():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0).train()
    dims = {"src": {1: "length"}, "src_key_padding_mask": {1: "length"}}
    runner = ShapeBuckets(layer, dims, sample=[{"src": (2, 16, 8)}], backend="eager")
    given = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    check(runner, layer, torch.randn(2, 5, 8), src_key_padding_mask=given)


def test_a_square_mask_is_padded_both_ways():
    class Scores(nn.Module):
        def forward(self, x, mask):
            scores = (x @ x.transpose(1, 2)).masked_fill(~mask, -1e9)
            return scores.softmax(-1) @ x

    model = Scores()
    runner = ShapeBuckets(model, {"x": {1: "length"}}, sample=[{"x": (2, 16, 8)}], backend="eager")
    check(runner, model, torch.randn(2, 5, 8), torch.ones(2, 5, 5, dtype=torch.bool).tril())


def test_lengths_are_given_and_kept(models):
    model = models.MaskedMean()
    runner = ShapeBuckets(model, {"x": {1: "length"}}, sample=[{"x": (2, 16, 4)}], backend="eager")
    check(runner, model, torch.randn(2, 5, 4))
    check(runner, model, torch.randn(2, 5, 4), lengths=torch.tensor([5, 2]))
    equal = ShapeBuckets(
        model, {"x": {1: "length"}}, sample=[{"x": (2, 16, 4)}], backend="eager", too_long="crop"
    )
    x = torch.randn(2, 20, 4)
    torch.testing.assert_close(
        equal(x, lengths=torch.tensor([20, 4])), model(x[:, :16], torch.tensor([16, 4]))
    )


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # Dynamo looks, and hides it elsewhere
@pytest.mark.parametrize("own_mask", [None, torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] * 5])])
def test_rows_that_are_padding_attend_to_something_so_that_no_gradient_is_nan(own_mask, models):
    model = models.Attention().train()
    runner = ShapeBuckets(
        model, {"x": {0: "batch", 1: "length"}}, sample=[{"x": (4, 16, 8)}], backend="aot_eager"
    )
    x = torch.randn(3, 5, 8, requires_grad=True)
    loss = runner(x, own_mask).square().sum()
    wanted = torch.autograd.grad(model(x, own_mask).square().sum(), [x, *model.parameters()])
    grad = torch.autograd.grad(loss, [x, *model.parameters()])
    torch.testing.assert_close(grad, wanted, rtol=1e-4, atol=1e-5)


def test_models_of_the_library_of_torch_are_masked(models):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0).train()
    runner = ShapeBuckets(
        layer,
        {"src": {1: "length"}},
        sample=[{"src": (2, 16, 8)}],
        backend="eager",
        mask="src_key_padding_mask",
    )
    check(runner, layer, torch.randn(2, 5, 8))


def test_an_unknown_parameter_is_told(models):
    with pytest.raises(InputError, match="no parameter 'masc'"):
        ShapeBuckets(models.Attention(), {"x": [1]}, mask="masc")


def test_with_two_inner_sizes_it_must_be_said_which_is_masked():
    def model(x, mask=None):
        return x if mask is None else x * mask[..., None]

    axes = declare_axes(model, {"x": {1: "height", 2: "width"}})
    assert masking_for(DETECT, axes, parameters_of(model)) is None
    with pytest.raises(InputError, match="which size does it mask"):
        masking_for("mask", axes, parameters_of(model))
    chosen = masking_for(Mask("mask", axis="height"), axes, parameters_of(model))
    assert chosen.axis == "height"


def test_a_mask_that_does_not_fit_is_told(models):
    runner = ShapeBuckets(models.Attention().eval(), {"x": {1: "length"}}, sample=SAMPLE, backend="eager")
    with pytest.raises(InputError, match=r"mask: has the shape \[2, 4\], but length is 5"):
        runner(torch.randn(2, 5, 8), torch.ones(2, 4, dtype=torch.bool))

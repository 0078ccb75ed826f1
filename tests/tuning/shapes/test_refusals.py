"""Padding that changes the result is refused, and the operation that lets it in is named."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrometer.tuning.shapes.buckets import ShapeBuckets
from pyrometer.tuning.shapes.checking import PaddingError


def pooled(x):
    """A mean over the padded dimension, in a function."""
    return functional.gelu(x).mean(1)


CASES = {
    "convolution": ("ConvNet", (2, 4, 7), 2, "second (Conv1d): conv1d reads over the edge"),
    "attention": (
        "Unmasked",
        (2, 7, 8),
        1,
        "attend (MultiheadAttention): multi_head_attention_forward attends",
    ),
    "mean": (pooled, (2, 7, 4), 1, "mean reduces over the padding"),
    "sum": (lambda x: (x + 1).sum(1), (2, 7, 4), 1, "sum reduces over the padding"),
    "softmax": (lambda x: x.softmax(-1), (2, 7), 1, "softmax attends to the padding"),
    "last": (lambda x: (x * 2)[:, -1], (2, 7), 1, "getitem picks from the end"),
    "recurrent": ("Recurrent", (2, 7, 4), 1, "lstm runs on into the padding"),
    "merged": (lambda x: torch.relu(x.reshape(-1, 4)), (2, 7, 4), 1, "reshape merges the padded dimension"),
    "reversed": (lambda x: x.flip(1), (2, 7), 1, "flip moves padding"),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_the_operation_that_lets_padding_in_is_named(case, models):
    model, shape, dim, reason = CASES[case]
    model = getattr(models, model)().eval() if isinstance(model, str) else model
    name = "x"
    runner = ShapeBuckets(
        model, {name: {dim: "length"}}, sample=[{name: (16,) * len(shape)}], backend="eager"
    )
    with pytest.raises(PaddingError, match=r"padding length from 7 to 16 changes the result") as failure:
        runner(torch.randn(shape))
    assert reason in str(failure.value)
    assert failure.value.culprit.text in str(failure.value)
    assert failure.value.error.max_rel > 1e-4 or failure.value.error.mismatch
    assert runner.statistics().num_graphs == 0


def test_batch_statistics_are_named_and_left_as_they_were(models):
    model = models.ConvNet().train()
    kept = [buffer.clone() for buffer in model.buffers()]
    runner = ShapeBuckets(model, {"x": {2: "length"}}, sample=[{"x": (2, 4, 16)}], backend="eager")
    with pytest.raises(PaddingError, match=r"norm \(BatchNorm1d\): batch_norm takes its statistics"):
        runner(torch.randn(2, 4, 7))
    assert model.training
    for before, after in zip(kept, model.buffers(), strict=True):
        assert torch.equal(before, after)


def test_a_padded_batch_is_refused_for_batch_norm_in_training_and_legal_in_eval_mode():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    sample = [{"input": (8, 4)}]
    with pytest.raises(PaddingError, match="batch_norm takes its statistics"):
        ShapeBuckets(model.train(), {"input": {0: "batch"}}, sample=sample, backend="eager")(
            torch.randn(5, 4)
        )
    model.eval()
    x = torch.randn(5, 4)
    runner = ShapeBuckets(model, {"input": {0: "batch"}}, sample=sample, backend="eager")
    torch.testing.assert_close(runner(x), model(x))


def test_statistics_of_a_batch_that_fits_move_as_they_would_without_buckets():
    torch.manual_seed(0)
    one, other = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    runner = ShapeBuckets(one.train(), {"input": {0: "batch"}}, sample=[{"input": (8, 4)}], backend="eager")
    for _ in range(3):
        x = torch.randn(8, 4)
        runner(x)
        other(x)
    torch.testing.assert_close(one.running_mean, other.running_mean)
    assert one.num_batches_tracked == other.num_batches_tracked


def test_the_dynamic_graph_takes_over_where_that_is_allowed(models):
    model = models.ConvNet().eval()
    runner = ShapeBuckets(
        model,
        {"x": {2: "length"}},
        sample=[{"x": (2, 4, 16)}],
        backend="eager",
        on_refusal="dynamic",
    )
    for size in (7, 9, 16):
        x = torch.randn(2, 4, size)
        torch.testing.assert_close(runner(x), model(x))
    statistics = runner.statistics()
    assert statistics.fallback_calls == 3
    assert len(statistics.refusals) == 1
    assert "conv1d" in statistics.refusals[0]


def test_a_later_check_finds_what_the_first_could_not():
    def mostly(x):
        return torch.where(x[:, :1] > 100, x * x.shape[1], x)

    runner = ShapeBuckets(mostly, {"x": [1]}, sample=[{"x": (1, 8)}], backend="eager", check_every=4)
    runner(torch.ones(1, 5))
    runner(torch.ones(1, 5))
    runner(torch.full((1, 5), 200.0))
    with pytest.raises(PaddingError, match="changes the result"):
        runner(torch.full((1, 5), 200.0))


@pytest.mark.parametrize("as_module", [True, False])
def test_dropout_is_left_out_of_the_check_and_goes_on_dropping(as_module, models):
    model = models.Dropping(as_module=as_module).train()
    runner = ShapeBuckets(model, {"x": [1]}, sample=[{"x": (2, 16, 4)}], backend="eager")
    found = runner(torch.randn(2, 7, 4))
    assert found.shape == (2, 7, 4)
    assert (found == 0).any()
    assert model.training
    assert runner.statistics().checks == 1


def test_no_other_thread_sees_a_model_out_of_training_while_it_is_checked():
    class Telling(nn.Module):
        """Notes in which mode its dropout is whenever it runs."""

        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x):
            seen.append(self.drop.training)
            return self.drop(x)

    seen = []
    runner = ShapeBuckets(Telling().train(), {"x": [1]}, sample=[{"x": (2, 16)}], backend=dropless_backend)
    runner(torch.randn(2, 7))
    assert len(seen) > 3
    assert all(seen)


def dropless_backend(graph, _inputs):
    """Runs a graph as it is."""
    return graph.forward


def test_random_results_cannot_be_checked_and_say_so():
    def noisy(x):
        return x + torch.rand_like(x)

    runner = ShapeBuckets(noisy, {"x": [1]}, sample=[{"x": (2, 16, 4)}], backend="eager")
    with pytest.raises(PaddingError, match="draws random numbers"):
        runner(torch.randn(2, 7, 4))
    unchecked = ShapeBuckets(
        noisy, {"x": [1]}, sample=[{"x": (2, 16, 4)}], backend="eager", tolerance=float("inf")
    )
    assert unchecked(torch.randn(2, 7, 4)).shape == (2, 7, 4)


def test_an_output_that_is_no_tensor_and_follows_the_size_is_told():
    def model(x):
        return x * 2, x.shape[1], x.mean()

    runner = ShapeBuckets(model, {"x": [1]}, sample=[{"x": (2, 8)}], backend="eager")
    with pytest.raises(PaddingError, match="output 1 is no tensor but the int 5, and 8 with padding"):
        runner(torch.randn(2, 5))


def test_a_model_that_writes_to_its_input_does_not_write_to_the_callers_when_checked():
    runner = ShapeBuckets(lambda x: x.add_(1) * 2, {"x": [1]}, sample=[{"x": (2, 8)}], backend="eager")
    x = torch.zeros(2, 5)
    assert runner(x).unique().tolist() == [2]
    assert x.unique().tolist() == [0]


def test_a_compiler_that_is_wrong_is_not_mistaken_for_padding(models):
    def wrong(graph, _inputs):
        return lambda *args: [value * 1.01 for value in graph.forward(*args)]

    runner = ShapeBuckets(models.Pointwise(), {"x": [1]}, sample=[{"x": (2, 16, 4)}], backend=wrong)
    with pytest.raises(PaddingError, match=r"although padding changes nothing: torch\.compile does"):
        runner(torch.randn(2, 7, 4))


def test_the_callers_random_state_moves_as_without_a_check(models):
    model = models.Dropping(as_module=True).train()
    runner = ShapeBuckets(model, {"x": [1]}, sample=[{"x": (2, 16, 4)}], backend="eager")
    x = torch.randn(2, 7, 4)
    torch.manual_seed(3)
    first, state = runner(x), torch.get_rng_state()
    torch.manual_seed(3)
    second = runner(x)
    assert torch.equal(first, second)
    assert torch.equal(state, torch.get_rng_state())

"""The inputs on which a changed model has to compute the same."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.tuning.trials.cases import LARGE, cases_of, refreshed, refreshed_source
from pyrometer.workload.inputs import Arguments


def labelled(arguments, *, fixed=True):
    return {case.label: case for case in cases_of(lambda: arguments, fixed, seed=1)}


def test_edge_cases_are_among_them():
    x = torch.randn(4, 3)
    cases = labelled(Arguments((x,), {}))
    assert torch.equal(cases["zeros"].arguments.args[0], torch.zeros(4, 3))
    assert torch.equal(cases["large values"].arguments.args[0], x * LARGE)
    assert cases["a single sample"].arguments.args[0].shape == (1, 3)
    assert cases["3 samples"].arguments.args[0].shape == (3, 3)
    assert [case.label for case in cases.values() if case.resized] == ["a single sample", "3 samples"]


def test_whole_numbers_stay_those_that_are_legal():
    tokens = torch.tensor([[5, 7, 9], [5, 5, 2]])
    fresh = labelled(Arguments((), {"input_ids": tokens}))["fresh values 1"].arguments.kwargs["input_ids"]
    assert sorted(fresh.flatten().tolist()) == sorted(tokens.flatten().tolist())
    assert fresh.shape == tokens.shape


def test_only_tensors_of_the_batch_are_resized():
    cases = labelled(Arguments((torch.randn(4, 3), torch.randn(2, 2)), {}))
    assert [t.shape[0] for t in cases["a single sample"].arguments.args] == [1, 2]


@given(st.integers(0, 2**16), st.floats(-10, 10), st.floats(0.1, 5))
def test_fresh_values_have_the_mean_and_the_spread_of_those_given(seed, mean, spread):
    tensor = torch.randn(2000, generator=torch.Generator().manual_seed(seed)) * spread + mean
    fresh = refreshed(tensor, torch.Generator().manual_seed(seed + 1))
    assert abs(float(fresh.mean()) - float(tensor.mean())) < 0.2 * spread
    assert 0.8 < float(fresh.std()) / float(tensor.std()) < 1.2
    assert float(fresh.min()) >= float(tensor.min())
    assert float(fresh.max()) <= float(tensor.max())
    assert not torch.equal(fresh, tensor)


def test_whole_numbers_stay_in_place_where_the_program_takes_no_other_order():
    """Of a table with three rows and one with nine thousand, say."""
    rows, dense = torch.tensor([[2, 8_999], [0, 4_000]]), torch.randn(2, 3)

    def takes(arguments):
        return bool((arguments.args[0][:, 0] < 3).all())

    for seed in range(8):
        fresh = refreshed_source(lambda: Arguments((rows, dense), {}), seed, takes)()
        assert takes(fresh)
        assert not torch.equal(fresh.args[1], dense)


def test_a_source_of_fresh_values_gives_the_same_each_time():
    source = refreshed_source(lambda: Arguments((torch.arange(6.0),), {}), seed=3)
    assert source().args[0] is source().args[0]
    assert not torch.equal(source().args[0], torch.arange(6.0))

"""How outputs follow the size of inputs is read off runs; what follows no rule is told."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.tuning.shapes.cropping import Cut, cut, disputed_size, learn_rules

LAWS = {
    "as many": lambda n: n,
    "one more": lambda n: n + 1,
    "two fewer": lambda n: n - 2,
    "three times": lambda n: 3 * n,
    "half, rounded down": lambda n: n // 2,
    "half, rounded up": lambda n: -(-n // 2),
    "a quarter, rounded up": lambda n: -(-n // 4),
    "a window of two": lambda n: (n - 1) // 2,
    "a window of five in steps of four": lambda n: (n - 5) // 4 + 1,
}


@given(st.integers(3, 50), st.integers(1, 50), st.sampled_from(sorted(LAWS)))
def test_rules_hold_at_every_other_size(given_size, more, law):
    out, edge = LAWS[law], given_size + more
    runs = {size: [(2, out(size))] for size in (given_size, edge)}
    if out(given_size) == out(edge):
        return  # it cannot be seen to follow
    for _ in range(14):
        rules, problem = learn_rules("n", runs)
        assert problem is None
        disputed = disputed_size(rules, given_size, ())
        if disputed is None:
            break
        runs[disputed] = [(2, out(disputed))]
    assert [rules[0][0].size(size) for size in range(3, edge)] == [out(size) for size in range(3, edge)]


def test_where_rules_may_differ_is_asked_nearby_and_never_at_sizes_that_cannot_be_run():
    rules, _ = learn_rules("n", {10: [(5,)], 16: [(8,)]})
    first = disputed_size(rules, 10, ())
    assert first == 9
    assert disputed_size(rules, 10, {9}) == 11


def test_dimensions_that_do_not_change_follow_nothing():
    assert learn_rules("n", {4: [(2, 3), None], 9: [(2, 3), None]}) == ([], None)


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        ({4: [(4,)], 9: [(4,), (9,)]}, "the output holds 1 or 2 values"),
        ({4: [(4,)], 9: [(9, 1)]}, "another number of dimensions"),
        ({4: [(16,)], 9: [(81,)]}, "no rule tells where to cut"),
    ],
)
def test_what_follows_no_rule_is_told(runs, told):
    rules, problem = learn_rules("n", runs)
    assert rules == []
    assert told in problem


def test_outputs_that_are_short_enough_are_the_very_same():
    x = torch.zeros(2, 3)
    rules, _ = learn_rules("n", {3: [(2, 3)], 5: [(2, 5)]})
    assert cut(x, [Cut(own[0].leaf, own[0].dim, own[0].size(3)) for own in rules]) is x

"""The registry as a whole: complete entries, no surprise on any input."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.costs.call import NotRecordedError, parse_call
from pyrometer.trace.costs.movement import FREE
from pyrometer.trace.costs.registry import cost, cost_of, formula_of, formulas
from pyrometer.trace.costs.tensors import DTYPES, ITEM_BYTES

shape = st.lists(st.integers(0, 6), max_size=5)
tensor = st.tuples(shape, st.sampled_from(sorted(DTYPES)), st.just(""))
several = st.tuples(st.lists(shape, max_size=3), st.just("TensorList"), st.just(""))
scalar = st.tuples(
    st.just([]),
    st.sampled_from(["Scalar", "ScalarList", "", "Int", "GenericList"]),
    st.sampled_from(
        [
            "",
            "1",
            "-1",
            "0.5",
            "True",
            "[]",
            "[1, 1]",
            "[0]",
            "[2, 2, 2]",
            "[True, False, True]",
            "[1, 2",
            "nan",
            "inf",
        ]
    ),
)
argument = st.one_of(tensor, tensor, several, scalar)


@given(name=st.sampled_from(sorted(formulas())), args=st.lists(argument, max_size=12), said=st.booleans())
def test_any_call_gives_a_cost_or_says_what_is_missing(name, args, said):
    dims, types, concrete = (json.dumps([arg[i] for arg in args]) for i in range(3))
    with contextlib.suppress(NotRecordedError):
        found = cost_of(parse_call(name, dims, types, None, concrete if said else None))
        assert found.flop >= 0
        assert found.bytes_read >= 0
        assert found.bytes_written >= 0
        assert isinstance(found.flop, int)
        assert found.dtype in ITEM_BYTES


def test_every_formula_says_where_it_comes_from():
    assert len(formulas()) > 400
    for name, formula in formulas().items():
        assert formula.source, name
        assert formula.function.__doc__, name
        assert name not in FREE


def test_two_formulas_for_one_operator_are_refused():
    with pytest.raises(ValueError, match="aten::mm"):
        cost("aten::mm", source="twice")(cost_of)


def test_unknown_operators_have_none():
    assert formula_of("my_extension::op") is None
    with pytest.raises(NotRecordedError, match="no formula"):
        cost_of(parse_call("my_extension::op", "[[1]]", '["float"]'))


@pytest.mark.parametrize("text", ["", "{", "null", "3", '"x"', "[[1,2]"])
def test_damaged_arguments_count_as_not_recorded(text):
    with pytest.raises(NotRecordedError):
        cost_of(parse_call("aten::relu", text, text, text, text))

"""Axes of a matrix: what may be written."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.bench.matrix.axes import AXES, parse_axes
from pyrometer.errors import InputError
from pyrometer.workload.variant import Variant


def test_cells_are_all_combinations_and_batch_varies_slowest():
    axes = parse_axes(["mode=eager,default", "batch=1,8", "dtype=float32,bfloat16"])
    cells = axes.cells()
    assert len(cells) == 8
    assert cells[0] == {"batch_size": 1, "dtype": "float32", "mode": "eager"}
    assert [cell["batch_size"] for cell in cells] == [1] * 4 + [8] * 4
    assert [cell["mode"] for cell in cells] == ["eager", "default"] * 4


def test_several_axes_may_be_in_one_text_and_doubles_count_once():
    assert parse_axes(["batch=1,2,1 mode=eager,eager"]) == parse_axes(["mode=eager", "batch=1,2"])


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "batch": st.lists(st.integers(1, 99), min_size=1, max_size=4),
            "threads": st.lists(st.integers(1, 9), min_size=1, max_size=2),
            "mode": st.lists(st.sampled_from(["eager", "default", "max-autotune"]), min_size=1, max_size=3),
            "dtype": st.lists(st.sampled_from(["float32", "bfloat16"]), min_size=1, max_size=2),
            "autocast": st.lists(st.sampled_from(["bfloat16"]), min_size=1, max_size=1),
            "memory_format": st.lists(
                st.sampled_from(["contiguous", "channels_last"]), min_size=1, max_size=2
            ),
        },
    ).filter(bool)
)
def test_every_cell_is_a_legal_variant(values):
    axes = parse_axes([f"{name}={','.join(map(str, listed))}" for name, listed in values.items()])
    cells = axes.cells()
    assert len(cells) == math.prod(len(set(listed)) for listed in values.values())
    for cell in cells:
        assert set(cell) == {AXES[name] for name in values}
        Variant(**cell)


BAD = {
    "": "no axis",
    "batch": "batch: no values; write for example batch=1,4,8",
    "batch=": "batch=: no values",
    "batch=,": "no values",
    "batch=0": "batch=0: legal are whole numbers from 1",
    "batch=-1": "legal are whole numbers from 1",
    "batch=1.5": "legal are whole numbers from 1",
    "batch=²": "legal are whole numbers from 1",
    "threads=two": "threads=two: legal are whole numbers",
    "mode=fast": "mode=fast: legal are eager, default, reduce-overhead",
    "dtype=fp16": "dtype=fp16: legal are float32, bfloat16, float16, float64",
    "autocast=on": "autocast=on: legal are",
    "memory_format=nhwc": "memory_format=nhwc: legal are contiguous, channels_last, channels_last_3d",
    "size=3": "'size' is not an axis; legal are batch, dtype, autocast, memory_format, threads, mode",
    "batch=1 batch_size=2": "batch is given twice",
    "model.py:work": "is not an axis",
    "batch=1 batch=2": "batch is given twice",
    "batch=" + ",".join(map(str, range(1, 202))): "201 cells, and 200 are the most",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:30])
def test_what_is_no_axis_is_refused_in_one_line(text):
    with pytest.raises(InputError, match=re.escape(BAD[text])) as caught:
        parse_axes([text])
    assert "\n" not in str(caught.value)

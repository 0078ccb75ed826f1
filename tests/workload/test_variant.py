from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.record import from_json, to_json
from pyrometer.workload.variant import AUTOCAST_DTYPES, DTYPES, MEMORY_FORMATS, MODES, Variant

SETTINGS = {
    "dtype": st.sampled_from(list(DTYPES)),
    "autocast": st.sampled_from(AUTOCAST_DTYPES),
    "memory_format": st.sampled_from(list(MEMORY_FORMATS)),
    "mode": st.sampled_from(MODES),
    "threads": st.integers(1, 512),
    "batch_size": st.integers(1, 4096),
}
CHANGES = st.fixed_dictionaries({}, optional=SETTINGS)


@given(CHANGES)
def test_a_variant_survives_json(changes):
    variant = Variant(**changes)
    assert from_json(Variant, to_json(variant)) == variant


@given(CHANGES, CHANGES)
def test_later_changes_win_and_others_stay(first, second):
    assert Variant().merged(first).merged(second) == Variant(**{**first, **second})


@given(CHANGES, CHANGES)
def test_labels_tell_variants_apart(one, two):
    assert (Variant(**one).label == Variant(**two).label) == (one == two)


@pytest.mark.parametrize("name", DTYPES)
def test_torch_dtypes_and_their_names_are_the_same(name):
    assert Variant().merged({"dtype": DTYPES[name]}) == Variant(dtype=name)


@pytest.mark.parametrize("name", MEMORY_FORMATS)
def test_torch_memory_formats_and_their_names_are_the_same(name):
    assert Variant().merged({"memory_format": MEMORY_FORMATS[name]}) == Variant(memory_format=name)


BAD = [
    ("dtype", "fp32", r"dtype: got 'fp32'; legal are float32, bfloat16, float16, float64"),
    ("dtype", torch.int8, "dtype: got 'int8'"),
    ("dtype", ["float32"], r"dtype: got \['float32'\]"),
    ("autocast", "float32", "legal are bfloat16, float16"),
    ("memory_format", "nhwc", "legal are contiguous, channels_last, channels_last_3d"),
    ("mode", "fast", "mode: got 'fast'; legal are eager, default"),
    ("threads", 0, "threads: got 0; it must be a whole number of at least 1"),
    ("threads", "4", "threads: got '4'"),
    ("threads", True, "threads: got True"),
    ("batch_size", 2.5, "batch_size: got 2.5"),
    ("compile", True, "variant: unknown setting 'compile'; legal are autocast, batch_size"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_illegal_settings(name, value, message):
    with pytest.raises(InputError, match=message):
        Variant().merged({name: value})

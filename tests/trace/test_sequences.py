"""Repeated sequences: counted once, maximal, with a gain that can be checked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.analysis.sequences import MAX_LENGTH, MIN_COUNT, sequences
from pyrometer.trace.reading.read import read_trace

ADD, MUL, RELU = "vectorized_elementwise_kernel<add>", "elementwise_kernel<mul>", "elementwise_kernel<relu>"
GEMM = "volta_sgemm_128x32_nt"


def write(builder, kernels, *, pause=1.0, dur=10.0, start=0.0, stream=7):
    """One kernel after the other, each by an operator of its own."""
    for name in kernels:
        builder.op(f"op_{name[:3]}", start, 2)
        builder.launch(name, start, start + 3, dur, call_us=1, stream=stream)
        start += dur + pause
    return start


def test_a_chain_is_found_whole(builder):
    at = 0.0
    for _ in range(5):
        at = write(builder, [ADD, MUL, RELU], start=at) + 1_000
    (sequence,) = sequences(builder.read())
    assert sequence.count == 5
    assert len(sequence.parts) == 3
    assert sequence.kind == "chain"
    assert (sequence.total_ns, sequence.pause_ns) == (5 * 30_000, 5 * 2_000)
    assert sequence.part_ns == [50_000] * 3
    assert sequence.num_removed == 10
    assert sequence.share == 1
    assert sequence.gain_low_ns == 10_000  # the pauses, since no shapes are known
    assert sequence.gain_high_ns == 10_000 + 5 * 20_000  # as long as the longest part


def test_known_shapes_bound_the_gain_by_traffic(builder):
    shape = {"Input Dims": [[1000]], "Input type": ["float"]}
    at = 0.0
    for _ in range(4):
        for op, kernel in (("aten::exp", ADD), ("aten::tanh", MUL)):
            builder.op(op, at, 2, **shape)
            builder.launch(kernel, at, at + 3, 10, call_us=1)
            at += 11
        at += 500
    (sequence,) = sequences(builder.read())
    assert sequence.intermediate_bytes == 4 * 4_000
    # Of four passes over 4 kB the handed-on result takes one to read and one to write.
    assert sequence.gain_low_ns == 4 * (1_000 + 5_000)
    assert sequence.gain_high_ns == 4 * (1_000 + 10_000)


def test_a_matrix_product_may_begin_a_sequence_and_stays(builder):
    at = 0.0
    for _ in range(3):
        at = write(builder, [GEMM, RELU], start=at, dur=20) + 500
    (sequence,) = sequences(builder.read())
    assert sequence.kind == "epilogue"
    assert sequence.gain_high_ns == 3 * (1_000 + 20_000)


def test_matrix_products_are_not_fused_with_each_other(builder):
    write(builder, [GEMM] * 20)
    assert sequences(builder.read()) == []


def test_the_same_work_again_and_again_saves_only_pauses(builder):
    write(builder, [ADD] * 24)
    found = sequences(builder.read())
    assert {sequence.kind for sequence in found} == {"repeated"}
    assert all(sequence.gain_low_ns == sequence.gain_high_ns == sequence.pause_ns for sequence in found)
    assert sum(sequence.count * len(sequence.parts) for sequence in found) <= 24


def operators(builder, pause):
    """Operators on a host, each with a copy of a number inside, a pause apart."""
    shape, number = {"Input Dims": [[4096], []], "Input type": ["float", "double"]}, {"Input Dims": [[], []]}
    at = 0.0
    for _ in range(4):
        for name in ("aten::mul", "aten::add", "aten::exp"):
            builder.op(name, at, 300, **shape)
            builder.op("aten::copy_", at + 5, 2, **number, **{"Input type": ["float", "double"]})
            at += 300 + pause
        at += 5_000


def test_what_an_operator_calls_itself_is_no_part_of_its_own(builder):
    operators(builder, pause=3)
    (sequence,) = sequences(builder.read())
    assert sequence.parts == ["aten::mul", "aten::add", "aten::exp"]
    assert (sequence.count, sequence.num_removed) == (4, 8)
    assert sequence.intermediate_bytes == 4 * 2 * 4 * 4096


@pytest.mark.parametrize(("pause", "number"), [(200, 1), (400, 0)])
def test_on_the_host_a_pause_is_long_where_it_is_longer_than_the_work_before(builder, pause, number):
    operators(builder, pause)
    assert len(sequences(builder.read())) == number


def test_sequences_do_not_cross_streams_or_long_pauses(builder):
    for i in range(6):
        write(builder, [ADD], start=1_000.0 * i)
        write(builder, [MUL], start=1_000.0 * i + 12, stream=8)
        write(builder, [RELU], start=1_000.0 * i + 300)
    assert sequences(builder.read()) == []


def test_kernels_of_one_operator_call_are_how_it_is_made(builder):
    for i in range(5):
        builder.op("aten::sort", 100 * i, 20)
        builder.launch(ADD, 100 * i + 1, 100 * i + 30, 5)
        builder.launch(MUL, 100 * i + 7, 100 * i + 36, 5)
    assert sequences(builder.read()) == []


def test_without_a_device_operators_are_the_parts(builder):
    shape = {"Input Dims": [[64], [64]], "Input type": ["float", "float"]}
    for i in range(4):
        builder.python("net.py(5): forward", 1000 * i, 100)
        builder.op("aten::view", 1000 * i, 1)
        builder.op("aten::mul", 1000 * i + 2, 10, **shape)
        builder.op("aten::add", 1000 * i + 14, 10, **shape)
    (sequence,) = sequences(builder.read())
    assert sequence.parts == ["aten::mul", "aten::add"]
    assert (sequence.count, sequence.where.file, sequence.where.line) == (4, "net.py", 5)
    assert sequence.pause_ns == 4 * 2_000


@given(names=st.lists(st.sampled_from([ADD, MUL, RELU, GEMM]), max_size=60))
def test_no_piece_of_work_counts_twice(new_builder, tmp_path, names):
    builder = new_builder(tmp_path)
    write(builder, names)
    found = sequences(builder.read())
    assert sum(sequence.total_ns for sequence in found) <= 10_000 * len(names)
    for sequence in found:
        assert sequence.count >= MIN_COUNT
        assert 2 <= len(sequence.parts) <= MAX_LENGTH
        assert 0 <= sequence.gain_low_ns <= sequence.gain_high_ns <= sequence.total_ns + sequence.pause_ns
        window = [name.split("<")[0] for name in sequence.parts]
        text = [name.split("<")[0] for name in names]
        assert any(text[i : i + len(window)] == window for i in range(len(text)))


def test_real_traces_give_sensible_candidates(real_trace):
    trace = read_trace(real_trace).ranks[0]
    found = sequences(trace)
    assert sum(sequence.share for sequence in found) <= 1 + 1e-9
    for sequence in found:
        assert 0 <= sequence.gain_low_ns <= sequence.gain_high_ns
        assert sequence.count >= MIN_COUNT


def test_nothing_gives_nothing(builder):
    assert sequences(builder.read()) == []
    builder.device("kernel", None, 0, 5)
    assert sequences(builder.read()) == []


@pytest.mark.parametrize("limit", [1, 3])
def test_the_list_may_be_cut(builder, limit):
    at = 0.0
    for i in range(6):
        at = write(builder, [f"elementwise_kernel_{i}", MUL] * 4, start=at) + 1_000
    assert len(sequences(builder.read(), limit=limit)) <= limit

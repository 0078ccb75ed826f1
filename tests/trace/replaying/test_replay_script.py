"""An operator of a trace becomes a program that runs it on tensors of the same shapes, types and strides."""

from __future__ import annotations

import pytest
import torch

import pyrometer
from pyrometer.errors import InputError
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.replaying.script import replay_script


@pytest.fixture
def recorded(tmp_path):
    """A trace that torch itself recorded, of some functions."""

    def record(*functions):
        with torch.profiler.profile(record_shapes=True) as profiler:
            for function in functions:
                function()
        path = tmp_path / "recorded.json"
        profiler.export_chrome_trace(str(path))
        return read_trace(path).rank()

    return record


@pytest.fixture
def run(monkeypatch):
    """Runs what was written, and gives the arguments that its operator was called with, and its result."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    def replay(text):
        scope = {"__name__": "replayed"}
        exec(compile(text, "op.py", "exec"), scope)
        with torch.random.fork_rng(devices=[]):
            work = scope["workload"]()
            with work.open() as session:
                return work, session.step(session.prepare())

    return replay


def test_shapes_types_and_strides_are_those_of_the_trace(recorded, run):
    a, b = torch.randn(6, 4, dtype=torch.bfloat16), torch.randn(5, 4, dtype=torch.bfloat16).t()
    work, result = run(replay_script(recorded(lambda: torch.mm(a, b)), "aten::mm"))
    assert isinstance(work, pyrometer.Call)
    assert [(one.shape, one.dtype, one.stride()) for one in work.args] == [
        (one.shape, one.dtype, one.stride()) for one in (a, b)
    ]
    assert result.shape == (6, 5)


def test_the_costliest_kind_of_call_is_taken_and_the_others_are_said(builder):
    for i, (size, dur) in enumerate(((2, 5), (2, 5), (300, 40))):
        builder.op(
            "aten::mm", 100 * i, dur, **{"Input Dims": [[size, size]] * 2, "Input type": ["float"] * 2}
        )
    text = replay_script(builder.read(), "aten::mm")
    assert "make((300, 300), torch.float32)" in text
    assert "There 1 call took 40.0 µs each, on the host." in text
    assert "1 other kind" in text


def test_scalars_lists_flags_and_keywords_are_passed_on(recorded, run):
    x, y, weight = torch.randn(1, 2, 8, 8), torch.randn(8, 8), torch.randn(4, 2, 3, 3)
    trace = recorded(
        lambda: torch.conv2d(x, weight, None, stride=2, padding=1),
        lambda: torch.add(y, y, alpha=3),
        lambda: torch.sum(x, (1, 2), keepdim=True),
        lambda: torch.softmax(y, 1),
    )
    assert run(replay_script(trace, "aten::convolution"))[1].shape == (1, 4, 4, 4)
    work, result = run(replay_script(trace, "aten::add"))
    assert torch.allclose(result, work.args[0] + 3 * work.args[1])
    assert run(replay_script(trace, "aten::sum"))[1].shape == (1, 1, 1, 8)
    work, result = run(replay_script(trace, "aten::_softmax"))
    assert torch.equal(result, torch.softmax(work.args[0], 1))


def test_types_that_a_call_names_stay_types(recorded, run):
    x = torch.randn(4)
    text = replay_script(recorded(lambda: x.to(torch.bfloat16)), "aten::_to_copy")
    assert run(text)[1].dtype == torch.bfloat16


def test_integers_are_legal_indices(recorded, run):
    table, rows = torch.randn(9, 3), torch.tensor([8, 0, 1])
    trace = recorded(
        lambda: torch.nn.functional.embedding(rows, table), lambda: table.gather(0, rows[:, None])
    )
    work, result = run(replay_script(trace, "aten::embedding"))
    assert result.shape == (3, 3)
    assert work.args[1].max() < 3  # below every size of the table
    assert run(replay_script(trace, "aten::gather"))[1].shape == (3, 1)


def test_an_expanded_tensor_keeps_its_strides(recorded, run):
    x = torch.randn(1, 4).expand(3, 4)
    work, _ = run(replay_script(recorded(lambda: torch.relu(x)), "aten::relu"))
    assert work.args[0].stride() == (0, 1)


def test_in_place_operators_change_their_own_tensors(recorded, run):
    x = torch.ones(4)
    work, result = run(replay_script(recorded(lambda: x.mul_(2.0)), "aten::mul_"))
    assert result is work.args[0]


def test_a_benchmark_can_be_measured(recorded):
    scope = {"__name__": "replayed"}
    text = replay_script(recorded(lambda: torch.ones(4) + 1), "aten::add")
    exec(compile(text, "op.py", "exec"), scope)
    with torch.random.fork_rng(devices=[]):
        found = pyrometer.measure(scope["workload"](), budget_s=0.05)
    assert found.name == "aten::add"


@pytest.mark.parametrize(
    ("op", "function", "message"),
    [
        (
            "aten::cat",
            lambda: torch.cat([torch.ones(2), torch.ones(3)]),
            "argument tensors .* is a list of tensors",
        ),
        ("aten::maximal", lambda: torch.ones(2) + 1, "the trace holds no such operator"),
        ("aten::ad", lambda: torch.ones(2) + 1, "did you mean aten::add"),
        (
            "aten::embedding_bag",
            lambda: torch.nn.functional.embedding_bag(
                torch.tensor([0, 1]), torch.ones(3, 2), torch.tensor([0])
            ),
            "argument offsets .* decides by its values",
        ),
    ],
)
def test_what_cannot_be_rebuilt_is_named_in_one_line(recorded, op, function, message):
    with pytest.raises(InputError, match=f"^--replay {op}: .*{message}") as error:
        replay_script(recorded(function), op)
    assert "\n" not in str(error.value)


def test_operators_of_other_libraries_are_named(builder):
    shapes = {"Input Dims": [[2, 3]], "Input type": ["float"], "Concrete Inputs": [""]}
    builder.op("vllm_nowhere::fused", 0, 5, **shapes)
    builder.op("Optimizer.step#SGD.step", 10, 5, **shapes)
    builder.op("aten::mm", 20, 5)
    trace = builder.read()
    for op, message in (
        ("vllm_nowhere::fused", "no operator of that name is registered here; import the library"),
        ("Optimizer.step#SGD.step", "not an operator"),
        ("aten::mm", "no shapes; record with record_shapes=True"),
    ):
        with pytest.raises(InputError, match=message):
            replay_script(trace, op)


def test_scalars_that_were_not_recorded_are_named(builder):
    shapes = {"Input Dims": [[4, 3], [], [], []], "Input type": ["float", "Scalar", "Scalar", "Scalar"]}
    builder.op("aten::transpose", 0, 5, **{key: value[:3] for key, value in shapes.items()})
    with pytest.raises(InputError, match=r"argument dim0 \(int\) was not recorded"):
        replay_script(builder.read(), "aten::transpose")


def test_the_verb_writes_a_file_that_bench_takes(tmp_path, builder, capsys, monkeypatch):
    from pyrometer.cli.main import main

    dims = [[2, 3], [3, 4]]
    builder.op(
        "aten::mm", 0, 5, **{"Input Dims": dims, "Input type": ["float"] * 2, "Concrete Inputs": ["", ""]}
    )
    monkeypatch.chdir(tmp_path)
    path = str(builder.write())
    assert main(["trace", path, "--replay", "aten::mm", "-o", "op.py"]) == 0
    assert "pyrometer bench op.py:workload" in capsys.readouterr().err
    assert main(["trace", path, "--replay", "aten::mm"]) == 0
    assert capsys.readouterr().out == (tmp_path / "op.py").read_text()
    for wrong in (["--replay", "aten::mm", "-o", "op.html"], ["--replay", "aten::mm", "--json"]):
        assert main(["trace", path, *wrong]) == 2

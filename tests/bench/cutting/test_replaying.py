"""Steps in which a place returns what it returned before: what they compute, and what they leave alone."""

from __future__ import annotations

import dataclasses
import threading

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.cutting.observing import Watch
from pyrometer.bench.cutting.place import Cuttable
from pyrometer.bench.cutting.recording import Recorder
from pyrometer.bench.cutting.replaying import Replayer, ReplayError
from pyrometer.bench.cutting.sides import Stage, StagedSession
from pyrometer.bench.cutting.substitution import Substitution
from pyrometer.bench.cutting.variation import varied
from pyrometer.place import Place

COUNTED: list[str] = []


@dataclasses.dataclass(frozen=True)
class Pair:
    left: torch.Tensor
    right: torch.Tensor


def scaled(x):
    COUNTED.append("scaled")
    return x * 2


def nested(x):
    COUNTED.append("nested")
    return {"pair": Pair(x + 1, x - 1), "rest": [x.sum(), 3, "text"]}


def filled(x, into):
    into.append(x)


def recorded(function, steps):
    """What two runs of the steps tell of a function."""
    recorder = Recorder()
    with Substitution([function], recorder).installed():
        for number, step in enumerate(steps):
            recorder.begin()
            step()
            recorder.end(complete=True, own_inputs=number < 2)
    return recorder


def replayed(function, recorder, step, *, trained=False):
    replayer = Replayer(recorder.calls, trained=trained)
    with Substitution([function], replayer).installed():
        for begin in (replayer.watch, replayer.settle):
            begin()
            replayer.begin()
            result = step()
            replayer.end()
    replayer.require_all()
    return result


def test_results_are_handed_out_without_the_call():
    x = torch.randn(3)
    step = lambda: nested(scaled(x))  # noqa: E731
    recorder = recorded(nested, [step, step])
    expected = nested(scaled(x))
    COUNTED.clear()
    result = replayed(nested, recorder, step)
    assert COUNTED == ["scaled", "scaled"]
    assert torch.equal(result["pair"].left, expected["pair"].left)
    assert torch.equal(result["rest"][0], expected["rest"][0])
    assert result["rest"][1:] == [3, "text"]
    assert recorder.problem is None


def test_what_the_program_writes_to_is_copied_each_time():
    x = torch.ones(4)

    def step():
        y = scaled(x)
        y += 1
        return y.sum().item()

    recorder = recorded(scaled, [step, step])
    assert replayed(scaled, recorder, step) == 12.0
    replayer = Replayer(recorder.calls)
    with Substitution([scaled], replayer).installed():
        replayer.watch()
        replayer.begin()
        first = step()
        replayer.settle()
        rest = []
        for _ in range(3):
            replayer.begin()
            rest.append(step())
        replayer.end()
    assert [first, *rest] == [12.0] * 4


@pytest.mark.parametrize("in_place", [False, True])
def test_gradients_pass_by_to_what_comes_before(in_place):
    weight = torch.ones(3, requires_grad=True)

    def step():
        weight.grad = None
        y = scaled(weight * 3)
        if in_place:
            y += 1
        (y * weight).sum().backward()
        return weight.grad

    recorder = recorded(scaled, [step, step])
    gradient = replayed(scaled, recorder, step)
    # What the last product gives is as before; of the rest only that there is some.
    assert (gradient > (7 if in_place else 6)).all()
    assert (gradient < (8 if in_place else 7)).all()


def test_parameters_of_a_module_are_still_updated():
    layer = Layer()

    def step():
        layer.zero_grad()
        layer(torch.ones(2, 3)).sum().backward()
        return layer.weight.grad

    recorder = recorded(Layer.forward, [step, step])
    assert replayed(Layer.forward, recorder, step, trained=True).shape == layer.weight.shape


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight


def test_numbers_are_handed_out_in_fresh_lists():
    def step():
        return numbered()

    recorder = recorded(numbered, [step, step])
    first = replayed(numbered, recorder, step)
    assert first == numbered()
    first[0].append(4)
    assert replayed(numbered, recorder, step) == numbered()


def numbered():
    return [[1, 2, 3], (4, 5), {"six": [6]}]


def test_strides_are_as_they_were():
    def step():
        return scaled(torch.ones(1, 5).expand(4, 5).t())

    recorder = recorded(scaled, [step, step])
    assert replayed(scaled, recorder, step).stride() == step().stride()


def test_more_calls_than_before_are_refused():
    x, times = torch.ones(2), [1]

    def step():
        return [scaled(x) for _ in range(times[0])]

    recorder = recorded(scaled, [step, step])
    times[0] = 2
    with pytest.raises(ReplayError, match="more than 1 times"):
        replayed(scaled, recorder, step)
    times[0] = 0
    with pytest.raises(ReplayError, match="called 0 times instead of 1"):
        replayed(scaled, recorder, step)
    assert scaled(x).tolist() == [2, 2]


def test_shapes_that_differ_between_steps_are_a_problem():
    sizes = iter([2, 3])
    recorder = recorded(scaled, [lambda: scaled(torch.ones(next(sizes)))] * 2)
    assert "other shapes" in (recorder.problem or "")


def test_numbers_of_calls_that_differ_between_steps_are_a_problem():
    times = iter([1, 2])
    recorder = recorded(scaled, [lambda: [scaled(torch.ones(2)) for _ in range(next(times))]] * 2)
    assert "called 1 times in one step and 2 in the next" in (recorder.problem or "")


def test_an_object_that_is_another_in_each_step_is_a_problem():
    recorder = recorded(opened, [opened, opened])
    assert "other shapes or types" in (recorder.problem or "")


def opened():
    return threading.Event()


def test_an_object_that_stays_the_same_is_handed_out():
    recorder = recorded(kept_object, [kept_object, kept_object])
    assert recorder.problem is None
    assert replayed(kept_object, recorder, kept_object) is EVENT


EVENT = threading.Event()


def kept_object():
    return EVENT


def test_calls_from_other_threads_are_a_problem():
    def step():
        thread = threading.Thread(target=scaled, args=(torch.ones(2),))
        thread.start()
        thread.join()
        scaled(torch.ones(2))

    assert "other threads" in (recorded(scaled, [step, step]).problem or "")


def test_what_changes_its_arguments_is_told():
    assert "changes what it is given" in str(recorded(filled, [lambda: filled(1, [])] * 2).neglected)
    assert "changes what it is given" in str(
        recorded(torch_fill, [lambda: torch_fill(torch.zeros(2))] * 2).neglected
    )
    assert recorded(scaled, [lambda: scaled(torch.ones(2))] * 2).neglected is None


def torch_fill(x):
    return x.add_(1)


@pytest.mark.parametrize(
    ("values", "results", "inputs", "same"),
    [
        ([1.0, 1.0, 1.0], scaled, True, True),
        ([1.0, 1.0, 2.0], scaled, False, False),
        ([1.0, float("nan"), float("nan")], scaled, False, False),
    ],
)
def test_the_same_is_told_bit_by_bit(values, results, inputs, same):
    given = iter(values)
    recorder = recorded(results, [lambda: results(torch.full((3,), next(given)))] * 3)
    assert (recorder.same_inputs, recorder.same_results) == (inputs, same)


def test_nothing_is_no_result_that_could_be_kept():
    recorder = recorded(filled, [lambda: filled(1, [])] * 2)
    assert not recorder.same_results


class Program(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        return self.layer(scaled(x)) + grid(x.shape[-1])


def grid(size):
    return torch.arange(size).float().cumsum(0)


def place_of(function):
    return Cuttable(
        what="function",
        name=function.__name__,
        where=Place(),
        last_line=None,
        share=1.0,
        change=lambda substitute: Substitution([function], substitute),
    )


@pytest.mark.parametrize("kind", ["inference", "training", "call"])
def test_with_other_inputs_only_what_does_not_depend_on_them_stays_the_same(kind):
    model = Program()
    work = {
        "inference": lambda: pm.Inference(model, torch.randn(2, 6)),
        "training": lambda: pm.Training(
            model,
            lambda out, y: (out - y).square().mean(),
            torch.optim.SGD(model.parameters(), 0.1),
            [(torch.randn(2, 6), torch.randn(2, 6))],
        ),
        "call": lambda: pm.Call(model, torch.randn(2, 6)),
    }[kind]()
    depends, constant = place_of(scaled), place_of(grid)
    with work.open() as session:
        session.activate()
        Watch(work, session).record([depends, constant], vary=True)
    assert not depends.recorder.same_inputs
    assert constant.recorder.is_constant


def test_without_other_inputs_nothing_is_told():
    work = pm.Call(lambda: scaled(torch.ones(3)))
    place = place_of(scaled)
    with work.open() as session:
        session.activate()
        Watch(work, session).record([place], vary=True)
    assert not place.recorder.same_inputs


@pytest.mark.parametrize(
    "value",
    [torch.zeros(4), torch.ones(4), torch.randn(3, 2), torch.ones(4, dtype=torch.bool), torch.arange(6)],
)
def test_other_inputs_differ_and_are_alike(value):
    other = varied(value, seed=1)
    assert not torch.equal(other, value)
    assert (other.shape, other.dtype) == (value.shape, value.dtype)


def test_sides_take_turns_on_one_session_and_leave_everything_as_it_was():
    model = Program()
    work = pm.Inference(model, torch.randn(2, 6))
    code = scaled.__code__
    with work.open() as session:
        session.activate()
        place = place_of(scaled)
        Watch(work, session).record([place], vary=False)
        stage = Stage(session)
        plain, cut = StagedSession(stage), StagedSession(stage, place)
        outputs = []
        for side in (plain, cut, cut, plain):
            side.activate()
            COUNTED.clear()
            outputs.append(side.step(side.prepare()))
            assert ([] if side is cut else ["scaled"]) == COUNTED
        stage.show(None)
    assert all(torch.equal(outputs[0], output) for output in outputs)
    assert scaled.__code__ is code

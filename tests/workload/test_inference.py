from __future__ import annotations

import contextlib
import threading

import pytest
import torch
from torch import nn

from pyrometer.errors import InputError, UserProgramError
from pyrometer.workload.inference import Inference


class Stateful(nn.Module):
    """A streaming model: a buffer changed in place, one replaced, one made on the first call, and a growing list."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.register_buffer("last", torch.zeros(2))
        self.register_buffer("mask", None)
        self.register_buffer("broadcast", torch.zeros(1).expand(4))
        self.history = []
        self.cache = {}
        self.longest = 2

    def forward(self, x):
        self.total += 1
        self.last = x.mean(0)
        if self.mask is None or x.shape[0] > self.longest:
            self.mask = torch.ones(x.shape[0])
            self.longest = x.shape[0]
            self.register_buffer("made", torch.ones(1))
        self.history.append(x)
        self.cache["x"] = x
        return x * self.mask[: x.shape[0], None] + self.total


def outputs(work, num=3):
    with work.open() as session:
        return [session.step(session.prepare()) for _ in range(num)]


def test_buffers_attributes_and_modes_are_restored():
    model = nn.Sequential(nn.BatchNorm1d(2), Stateful())
    model[0].eval()
    stateful = model[1]
    buffers = [(name, buffer, buffer.clone()) for name, buffer in model.named_buffers()]
    history = stateful.history
    first = outputs(Inference(model, torch.randn(5, 2)))
    assert [(name, id(buffer)) for name, buffer in model.named_buffers()] == [
        (n, id(b)) for n, b, _ in buffers
    ]
    assert all(torch.equal(buffer, value) for _, buffer, value in buffers)
    assert (stateful.mask, stateful.longest, stateful.cache, history) == (None, 2, {}, [])
    assert stateful.history is history
    assert [part.training for part in model.modules()] == [True, False, True]
    assert len(first) == 3
    assert not hasattr(stateful, "made")


def test_a_forward_pass_runs_in_eval_and_inference_mode_and_leaves_neither_behind():
    seen = []
    model = nn.Dropout(0.5)
    model.register_forward_hook(lambda m, *_: seen.append((m.training, torch.is_inference_mode_enabled())))
    with Inference(model, torch.ones(2)).open() as session:
        assert not torch.is_inference_mode_enabled()
        session.step(session.prepare())
        assert torch.is_grad_enabled()
    assert seen == [(False, True)]
    assert model.training


INPUT_FORMS = {
    "tensor": torch.ones(3, 4),
    "tuple": (torch.ones(3, 4),),
    "dict": {"input": torch.ones(3, 4)},
    "callable tensor": lambda: torch.ones(3, 4),
    "callable tuple": lambda: (torch.ones(3, 4),),
    "callable dict": lambda: {"input": torch.ones(3, 4)},
    "shapes": [(3, 4)],
    "sizes": [torch.Size([3, 4])],
}


@pytest.mark.parametrize("form", INPUT_FORMS)
def test_forms_of_inputs(form):
    work = Inference(nn.Linear(4, 2), INPUT_FORMS[form])
    with work.open() as session:
        for _ in range(3):
            assert session.step(session.prepare()).shape == (3, 2)
        assert session.units_per_step == 3


def test_shapes_take_turns_and_are_the_same_in_every_session():
    work = Inference(nn.Identity(), [(1, 4), (2, 4), (5, 4)])
    with work.open() as one, work.open() as two:
        drawn = [session.prepare().args[0] for session in (one, two) for _ in range(4)]
        assert [x.shape[0] for x in drawn] == [1, 2, 5, 1] * 2
        assert torch.equal(drawn[2], drawn[6])
        assert one.units_per_step == 9 / 4


def test_a_callable_gives_fresh_inputs_and_its_units_are_counted():
    sizes = iter([2, 4, 6, 8])
    work = Inference(nn.Identity(), lambda: torch.ones(next(sizes), 3))
    with work.open() as session:
        shapes = [session.step(session.prepare()).shape[0] for _ in range(3)]
    assert shapes == [2, 4, 6]
    assert session.units_per_step == 4


def test_a_batch_of_prepared_steps_may_be_run_afterwards():
    sizes = iter(range(1, 9))
    with Inference(nn.Identity(), lambda: torch.ones(next(sizes), 3)).open() as session:
        prepared = [session.prepare() for _ in range(4)]
        assert [session.step(arguments).shape[0] for arguments in prepared] == [1, 2, 3, 4]


def test_effective_units_from_a_mask_in_the_inputs():
    ids, mask = torch.zeros(2, 4, dtype=torch.long), torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])

    class Model(nn.Module):
        def forward(self, ids, mask):
            return ids * mask

    for inputs, where in (
        ({"ids": ids, "mask": mask}, "mask"),
        ((ids, mask), 1),
        ((ids, mask), lambda given: given[1]),
        ({"ids": ids, "mask": mask}, lambda given: given["mask"]),
    ):
        with Inference(Model(), inputs, unit="tokens", mask=where).open() as session:
            session.step(session.prepare())
            assert session.units_per_step == 4
            assert session.padding_ratio == 0.5


@pytest.mark.parametrize(
    ("options", "units"),
    [
        ({}, 6),
        ({"per_step": 30}, 60),  # so many for the three that were given: twice as many for twice the batch
        ({"per_step": lambda x: x.numel()}, 24),
    ],
)
def test_units_follow_the_batch_size(options, units):
    work = Inference(nn.Linear(4, 2), torch.ones(3, 4), **options).variant(batch_size=6)
    with work.open() as session:
        assert session.step(session.prepare()).shape == (6, 2)
        assert session.units_per_step == units


@pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 8])
def test_only_what_shares_the_batch_dimension_is_resized(batch_size):
    class Model(nn.Module):
        def forward(self, images, camera, label, scale):
            return images.shape, camera.shape, label.shape, scale.shape

    inputs = {
        "images": torch.randn(3, 5, 8, 8),
        "camera": torch.eye(4),
        "label": torch.ones(3),
        "scale": torch.ones(()),
    }
    with Inference(Model(), inputs).variant(batch_size=batch_size).open() as session:
        prepared = session.prepare()
        shapes = session.step(prepared)
    assert [tuple(shape) for shape in shapes] == [(batch_size, 5, 8, 8), (4, 4), (batch_size,), ()]
    assert torch.equal(prepared.kwargs["images"][0], inputs["images"][0])
    assert inputs["images"].shape[0] == 3


@pytest.mark.parametrize("dtype", ["bfloat16", torch.float64])
def test_another_dtype_runs_a_copy(dtype):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    model[0].tied = model[0].weight
    x, ids = torch.randn(3, 4), torch.zeros(2, dtype=torch.long)
    work = Inference(model, x).variant(dtype=dtype)
    with work.open() as session:
        assert session.model[0].tied is session.model[0].weight
        assert session.step(session.prepare()).dtype == {"bfloat16": torch.bfloat16}.get(dtype, dtype)
    assert {p.dtype for p in model.parameters()} == {x.dtype} == {torch.float32}
    with Inference(nn.Embedding(3, 2), ids).variant(dtype=dtype).open() as session:
        assert session.prepare().args[0] is ids


def test_autocast_is_on_in_the_step_only():
    with Inference(nn.Linear(4, 2), torch.ones(3, 4)).variant(autocast="bfloat16").open() as session:
        for _ in range(2):
            assert session.step(session.prepare()).dtype == torch.bfloat16
            assert not torch.is_autocast_enabled("cpu")


def test_memory_format_lays_out_model_and_inputs():
    model, x = nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8)
    with Inference(model, x).variant(memory_format=torch.channels_last).open() as session:
        prepared = session.prepare()
        assert prepared.args[0].is_contiguous(memory_format=torch.channels_last)
        assert session.model.weight.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(session.step(prepared), model(x))
    assert not model.weight.is_contiguous(memory_format=torch.channels_last)
    volume = nn.Conv3d(3, 4, 3)
    with Inference(volume, [(2, 3, 8, 8, 8)]).variant(memory_format="channels_last_3d").open() as session:
        assert session.prepare().args[0].is_contiguous(memory_format=torch.channels_last_3d)


def test_threads_belong_to_the_session_that_is_active():
    seen = []
    model = nn.Identity()
    model.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    work = Inference(model, torch.ones(2))
    with work.variant(threads=before + 1).open() as more, work.open() as plain:
        for session in (more, plain, more):
            session.activate()
            session.step(session.prepare())
        assert (more.threads, plain.threads) == (before + 1, before)
    assert seen == [before + 1, before, before + 1]
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("first_out", [0, 1])
def test_settings_return_whichever_session_closes_first(first_out):
    work = Inference(nn.Identity(), torch.ones(2))
    before = torch.get_num_threads()
    stacks = [contextlib.ExitStack(), contextlib.ExitStack()]
    sessions = [
        stack.enter_context(work.variant(threads=before + n).open()) for n, stack in enumerate(stacks, 1)
    ]
    stacks[first_out].close()
    left = sessions[1 - first_out]
    left.activate()
    assert torch.get_num_threads() == left.threads
    stacks[1 - first_out].close()
    assert torch.get_num_threads() == before


def test_settings_that_a_step_changes_are_put_back():
    before = torch.get_num_threads(), torch.get_default_dtype(), torch.get_float32_matmul_precision()
    model = nn.Identity()

    def careless(*_):
        torch.set_num_threads(before[0] + 1)
        torch.set_default_dtype(torch.float64)
        torch.set_float32_matmul_precision("medium")
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = True

    model.register_forward_hook(careless)
    for _ in range(2):
        outputs(Inference(model, torch.ones(2)))
        now = torch.get_num_threads(), torch.get_default_dtype(), torch.get_float32_matmul_precision()
        assert now == before
        assert not torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.cudnn.benchmark


def test_random_numbers_go_on_as_if_nothing_had_run():
    state = torch.get_rng_state()
    first = outputs(Inference(nn.Identity(), lambda: torch.rand(3)))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(
        torch.equal(a, b)
        for a, b in zip(first, outputs(Inference(nn.Identity(), lambda: torch.rand(3))), strict=True)
    )


def test_lazy_parameters_stay_lazy():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d())
    assert outputs(Inference(model, torch.ones(2, 3)))[0].shape == (2, 4)
    assert torch.nn.parameter.is_lazy(model[0].weight)
    assert outputs(Inference(model, torch.ones(2, 3)).variant(dtype="bfloat16"))[0].dtype == torch.bfloat16


def test_scripted_modules():
    model = torch.jit.script(nn.Sequential(nn.Linear(4, 2), nn.Dropout()))
    assert outputs(Inference(model, torch.ones(3, 4)))[0].shape == (3, 2)
    assert model.training


def test_a_model_that_cannot_be_copied_runs_as_it_is_but_not_in_another_dtype():
    model = nn.Linear(4, 2)
    model.lock = threading.Lock()
    work = Inference(model, torch.ones(3, 4))
    with work.open() as session, work.variant(threads=1).open() as two:
        assert torch.equal(session.step(session.prepare()), two.step(two.prepare()))
    with pytest.raises(InputError, match="model: cannot be copied"), work.variant(dtype="bfloat16").open():
        pass


def test_models_without_parameters_with_changing_shapes_and_nans():
    calls = []

    class Odd(nn.Module):
        def forward(self, x):
            calls.append(1)
            return torch.full((len(calls),), float("nan"))

    assert [len(y) for y in outputs(Inference(Odd(), torch.ones(2)))] == [1, 2, 3]
    with Inference(nn.ReLU(), torch.ones(2, device="meta")).open() as session:
        assert session.device.type == "meta"


def test_some_inputs_may_lie_elsewhere():
    class Model(nn.Linear):
        def forward(self, x, lengths):
            return super().forward(x), lengths

    work = Inference(Model(4, 2, device="meta"), (torch.ones(3, 4, device="meta"), torch.tensor([1, 2, 3])))
    assert outputs(work)[0][0].device.type == "meta"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_state_is_restored_when_a_step_fails(error):
    model = Stateful()

    def fail(*_):
        if model.total[0] > 2:
            raise error("step")

    model.register_forward_hook(fail)
    with pytest.raises(error):
        outputs(Inference(model, torch.ones(2, 2)), 5)
    assert (model.total.tolist(), model.history, model.training) == ([0, 0], [], True)


def test_phases():
    marks = []
    work = Inference(nn.Identity(), lambda: torch.ones(2, 3))
    with work.open() as session:
        assert session.phased_step(marks.append).shape == (2, 3)
    assert tuple(marks) == work.phases() == ("data", "forward")


def test_snapshot_bytes():
    model = nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2))
    buffers = 2 * 2 * 4 + 8
    assert Inference(model, torch.ones(1, 4)).snapshot_bytes() == buffers
    assert Inference(model, torch.ones(1, 4)).variant(dtype="bfloat16").snapshot_bytes() == buffers + 14 * 4


def test_a_variant_keeps_everything_else():
    work = Inference(nn.Linear(4, 2), torch.ones(3, 4), "frames", 3, deadline_s=0.01, name="net")
    other = work.variant(threads=1).variant(batch_size=2)
    assert (other.name, other.unit, other.deadline_s, other.model) == ("net", "frames", 0.01, work.model)
    assert other.config.label == "1 thread, batch 2"
    assert work.config.label == "as written"
    assert work.compiled().config.mode == "default"


BAD = {
    "no module": (lambda: Inference(3, torch.ones(1)), "model: got int; it must be a torch.nn.Module"),
    "wrong type": (lambda: outputs(Inference(nn.ReLU(), 3)), "inputs: got int; legal are a tensor, a tuple"),
    "list": (
        lambda: outputs(Inference(nn.ReLU(), [torch.ones(1)])),
        "got list; .*; write several arguments as a tuple",
    ),
    "empty list": (lambda: outputs(Inference(nn.ReLU(), [])), "inputs: got list"),
    "negative shape": (lambda: outputs(Inference(nn.ReLU(), [(3, -1)])), "inputs: got list"),
    "callable gives": (lambda: outputs(Inference(nn.ReLU(), lambda: 3)), "inputs: got int"),
    "device": (
        lambda: outputs(Inference(nn.Linear(4, 2, device="meta"), torch.ones(3, 4))),
        r"inputs on cpu but the model on meta; move them in the factory: x\.to\('meta'\)",
    ),
    "no such mask": (
        lambda: outputs(Inference(nn.ReLU(), torch.ones(1), mask="mask")),
        "mask: no input 'mask'; there are 1 positional inputs, and by keyword: none",
    ),
    "mask is no tensor": (
        lambda: outputs(Inference(nn.ReLU(), (torch.ones(1), [1]), mask=1)),
        "mask: input 1 is list; it must be a tensor",
    ),
    "compiled inside": (
        lambda: outputs(Inference(nn.Sequential(_compiled(nn.ReLU())), torch.ones(1)).variant(mode="eager")),
        "mode: got 'eager', but its part '0' is already compiled; give the plain model",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_workloads_are_refused_in_one_line(name):
    make, message = BAD[name]
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


USER_FAILURES = {
    "inputs": lambda: outputs(Inference(nn.ReLU(), lambda: 1 / 0)),
    "mask": lambda: outputs(Inference(nn.ReLU(), torch.ones(1), mask=lambda x: 1 / 0)),
    "per_step": lambda: outputs(Inference(nn.ReLU(), torch.ones(1), per_step=lambda x: 1 / 0)),
}


@pytest.mark.parametrize("name", USER_FAILURES)
def test_failures_of_the_users_functions_say_where(name):
    with pytest.raises(
        UserProgramError, match=rf"{name} raised ZeroDivisionError: .*test_inference\.py:\d+\)$"
    ):
        USER_FAILURES[name]()


def _compiled(module):
    return torch.compile(module, backend="eager")

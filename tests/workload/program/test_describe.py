"""What a program's description says, and that looking leaves no trace."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from pyrometer.errors import InputError
from pyrometer.record import from_json, to_json
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference
from pyrometer.workload.program.describe import describe
from pyrometer.workload.program.inputs import input_tensors
from pyrometer.workload.program.modules import look_of
from pyrometer.workload.program.record import ModuleFact, Program
from pyrometer.workload.training import Training


class Net(nn.Module):
    """A convolution that only its norm reads, one that another reads too, attention by hand, a dropout left on."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.side = nn.Conv2d(8, 8, 1)
        self.side_norm = nn.BatchNorm2d(8)
        self.unused = nn.Linear(4, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.norm(self.conv(x)))
        y = self.side(x)
        x = self.side_norm(y) + y
        return functional.dropout(x.mean((2, 3)), 0.5)


def fact(program: Program, path: str) -> ModuleFact:
    return next(module for module in program.modules if module.path == path)


def test_modules_settings_and_the_order_of_calls_are_told() -> None:
    program = describe(Inference(Net(), torch.randn(2, 3, 8, 8)))
    assert program.kind == "inference"
    assert (program.device, program.compiled, program.grad_mode) == ("cpu", False, "inference_mode")
    conv = fact(program, "conv")
    assert conv.settings["kernel_size"] == "3x3"
    assert conv.settings["in_channels"] == 3
    assert conv.settings["bias"] is True
    assert (conv.calls, conv.dtype, conv.training) == (1, "float32", False)
    assert fact(program, "norm").follows == "conv"
    assert fact(program, "side_norm").follows is None
    assert fact(program, "unused").calls == 0
    assert fact(program, "unused").settings["bias"] is False
    assert sum(module.num_parameters for module in program.modules) == sum(program.parameter_dtypes.values())
    assert program.model_file == __file__
    assert program.model_line == inspect.getsourcelines(Net)[1]
    assert from_json(Program, to_json(program)) == program


def test_functional_calls_and_active_dropouts_are_counted() -> None:
    program = describe(Inference(Net(), torch.randn(2, 3, 8, 8)))
    assert program.calls["dropout"] == 1
    assert program.calls["conv2d"] == 2
    assert program.active_dropouts == 1
    assert describe(Inference(nn.Sequential(nn.Dropout(0.5)), torch.ones(2))).active_dropouts == 0


def test_a_training_tells_optimizer_loss_scaler_and_what_the_loader_gave(
    make_training: Callable[..., Training],
) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    program = describe(make_training(amp=torch.bfloat16, scaler=scaler))
    assert program.kind == "training"
    assert program.grad_mode == "grad"
    assert program.autocast_dtype == "bfloat16"
    assert program.loss == "mse_loss"
    assert program.scaler_scale == 8.0
    assert program.optimizer is not None
    assert program.optimizer.type_name == "AdamW"
    assert program.optimizer.state_bytes is not None
    assert program.optimizer.state_bytes > 2 * 4 * program.optimizer.num_parameters
    assert [(tensor.name, tensor.shape) for tensor in program.inputs] == [("0", [4, 6]), ("1", [4, 6])]


def test_weights_are_judged_as_they_were_before_the_step(make_training: Callable[..., Training]) -> None:
    model = nn.Sequential(nn.Linear(6, 64), nn.Linear(64, 6))
    nn.init.zeros_(model[1].weight)
    assert describe(make_training(model=model, lr=1.0)).initialised == {"0": "default", "1": "zero"}


def test_nothing_is_changed_not_even_when_the_step_raises(
    make_training: Callable[..., Training], picture: Callable[..., Any], alike: Callable[..., bool]
) -> None:
    def failing(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        model(batch[0]).sum().backward()
        raise ValueError("no such label")

    for loss in (functional.mse_loss, failing):
        work = make_training(loss=loss)
        before = picture(work)
        random = torch.get_rng_state()
        program = describe(work)
        assert alike(picture(work), before)
        assert torch.equal(torch.get_rng_state(), random)
        assert program.observed is (loss is functional.mse_loss)


def test_a_step_that_raises_is_a_note_and_the_objects_are_read_all_the_same() -> None:
    program = describe(Inference(nn.Linear(4, 2), torch.randn(2, 3)))
    assert "raised RuntimeError" in program.notes[0]
    assert [module.path for module in program.modules] == [""]
    assert program.calls == {}
    assert program.active_dropouts is None
    assert program.modules[0].calls is None


def test_inputs_that_cannot_be_made_are_a_note() -> None:
    def inputs() -> torch.Tensor:
        raise FileNotFoundError("frames.bin")

    program = describe(Inference(nn.Linear(4, 2), inputs))
    assert "frames.bin" in program.notes[0]
    assert program.modules[0].type_name == "Linear"
    assert program.grad_mode == "inference_mode"


def test_an_exception_that_a_model_catches_does_not_upset_the_account() -> None:
    class Tries(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wrong = nn.Linear(3, 3)
            self.right = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                return self.wrong(x)
            except RuntimeError:
                return self.right(x)

    program = describe(Inference(Tries(), torch.randn(2, 4)))
    assert [module.calls for module in program.modules] == [1, 1]
    assert program.observed


def test_compiled_programs_are_run_as_written() -> None:
    work = Inference(Net(), torch.randn(2, 3, 8, 8)).compiled()
    program = describe(work)
    assert program.compiled
    assert fact(program, "norm").follows == "conv"
    program = describe(Inference(torch.compile(Net()), torch.randn(2, 3, 8, 8)))
    assert program.compiled
    assert program.calls["conv2d"] == 2


def test_the_model_of_a_function_is_found_by_its_call() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.GELU())

    def serve(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x)

    program = describe(Call(serve, torch.randn(2, 4)))
    assert program.kind == "script"
    assert program.grad_mode == "no_grad"
    assert program.autocast_dtype == "bfloat16"
    assert [module.type_name for module in program.modules] == ["Linear", "GELU"]
    assert program.activations == {"GELU": 1}
    assert [tensor.shape for tensor in program.inputs] == [[2, 4]]


def test_a_function_without_a_model_has_calls_only() -> None:
    program = describe(Call(sorted, [3, 1, 2]))
    assert (program.device, program.modules, program.calls) == ("none", [], {})


def test_attention_stands_for_its_projection() -> None:
    class SelfAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.attend(x, x, x, need_weights=False)[0]

    program = describe(Inference(SelfAttention(), torch.randn(2, 5, 8)))
    assert [module.path for module in program.modules] == ["", "attend"]
    assert program.modules[1].num_parameters == sum(program.parameter_dtypes.values())
    assert program.modules[1].settings["num_heads"] == 2


def test_channels_last_is_told_of_weights_and_inputs() -> None:
    model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    x = torch.randn(1, 3, 8, 8).to(memory_format=torch.channels_last)
    program = describe(Inference(model, x))
    assert program.modules[0].channels_last
    assert program.inputs[0].channels_last
    plain = describe(Inference(nn.Conv2d(3, 4, 3), torch.randn(1, 3, 8, 8)))
    assert not plain.modules[0].channels_last


def test_lazy_parameters_count_as_none() -> None:
    program = describe(Inference(nn.Sequential(nn.LazyLinear(4)), torch.randn(2, 3)))
    assert program.observed
    assert program.modules[0].num_parameters == 3 * 4 + 4


def test_the_users_own_loader_goes_on_undisturbed() -> None:
    data = TensorDataset(torch.randn(8, 6), torch.randn(8, 6))
    loader = DataLoader(data, batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(3))
    model = nn.Linear(6, 6)
    work = Training(model, functional.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), loader)
    state = loader.generator.get_state()
    assert describe(work).inputs[0].shape == [2, 6]
    assert torch.equal(loader.generator.get_state(), state)


Pair = namedtuple("Pair", "image label")  # noqa: PYI024 - as old programs write it


@dataclass
class Sample:
    image: torch.Tensor
    name: str


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (torch.zeros(1), ["0"]),
        ((torch.zeros(1), torch.zeros(1)), ["0", "1"]),
        ({"x": [torch.zeros(1)], "y": "text"}, ["x.0"]),
        (Pair(torch.zeros(1), torch.zeros(1)), ["image", "label"]),
        ([Sample(torch.zeros(1), "a")], ["0.image"]),
        (3, []),
    ],
)
def test_tensors_are_named_by_where_they_stand(value: Any, names: list[str]) -> None:
    assert [tensor.name for tensor in input_tensors(value)] == names


@pytest.mark.parametrize(
    ("fill", "look"),
    [
        (nn.init.zeros_, "zero"),
        (nn.init.ones_, "constant"),
        (nn.init.xavier_normal_, "other"),
        (lambda weight: weight, "default"),
    ],
)
def test_the_look_of_a_weight(fill: Callable[[torch.Tensor], Any], look: str) -> None:
    torch.manual_seed(0)
    for layer in (nn.Linear(300, 200), nn.Conv2d(16, 32, 3), nn.Linear(64, 50).bfloat16()):
        fill(layer.weight)
        assert look_of(layer.weight) == look


def test_other_errors_of_preparation_are_notes_too() -> None:
    work = Inference(nn.Linear(4, 2), [1, 2])
    with pytest.raises(InputError), work.open():
        pass
    assert "inputs: got list" in describe(work).notes[0]


def test_reads_across_memory_are_told_with_the_users_line() -> None:
    class Mixes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x.t() + 1.0  # the result has the same layout
            return x + y

    program = describe(Inference(Mixes(), torch.randn(512, 512)))
    (read,) = program.strided_reads
    assert (read.function, read.shape, read.strides, read.calls) == ("add", [512, 512], [1, 512], 1)
    assert (read.file, read.line) == (__file__, Mixes.forward.__code__.co_firstlineno + 2)


def test_settings_are_those_in_force() -> None:
    torch.backends.cudnn.benchmark = True
    try:
        program = describe(Inference(nn.Linear(2, 2), torch.zeros(1, 2)).variant(threads=2))
    finally:
        torch.backends.cudnn.benchmark = False
    assert program.settings["cudnn_benchmark"] is True
    assert program.settings["threads"] == 2
    assert program.settings["deterministic"] is False
    assert program.settings["matmul_precision"] == "highest"


def test_settings_of_the_optimizer_are_told(make_training: Callable[..., Training]) -> None:
    optimizer_fact = describe(make_training(torch.optim.SGD, lr=0.5)).optimizer
    assert optimizer_fact is not None
    assert optimizer_fact.settings["lr"] == 0.5
    assert optimizer_fact.settings["momentum"] == 0
    assert (optimizer_fact.fused, optimizer_fact.foreach, optimizer_fact.state_bytes) == (None, None, None)


def test_wrappers_are_told_with_their_settings(tmp_path: Path) -> None:
    assert describe(Inference(nn.DataParallel(nn.Linear(2, 2)), torch.zeros(1, 2))).wrappers[0].type_name == (
        "DataParallel"
    )
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        model = nn.parallel.DistributedDataParallel(
            nn.Sequential(nn.Linear(2, 2)), find_unused_parameters=True, bucket_cap_mb=7
        )
        batches = [(torch.zeros(1, 2), torch.zeros(1, 2))]
        program = describe(
            Training(model, functional.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), batches)
        )
    finally:
        torch.distributed.destroy_process_group()
    (wrapper,) = program.wrappers
    assert (wrapper.path, wrapper.type_name) == ("", "DistributedDataParallel")
    assert wrapper.settings["find_unused_parameters"] is True
    assert wrapper.settings["static_graph"] is False
    assert wrapper.settings["bucket_bytes_cap"] == 7 * 2**20
    assert [module.path for module in program.modules] == ["module.0"]
    assert program.observed

"""What a model is made of, read from its objects: modules, dtypes, wrappers, and how its weights look."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from pyrometer.source.ownership import owner_of
from pyrometer.workload.program.record import ModuleFact, Wrapper
from pyrometer.workload.program.seen import SeenStep

Setting = int | float | str | bool | None

STANDS_FOR_CHILDREN = (nn.MultiheadAttention,)
"""Their children are called by function, so that these alone say what is computed."""

WRAPPERS = {
    "DistributedDataParallel": (
        "find_unused_parameters", "static_graph", "gradient_as_bucket_view", "broadcast_buffers", "bucket_bytes_cap",
    ),
    "DataParallel": ("dim",),
    "FullyShardedDataParallel": ("sharding_strategy", "mixed_precision", "limit_all_gathers"),
}  # fmt: skip
"""By the class's name, since some are not in every build of torch; FSDP2 changes the class of the module itself."""

WEIGHTED = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
"""Layers whose weights are looked at."""

SAMPLE = 65_536
"""Elements of a weight that are looked at: enough for its spread to half a percent."""


def unwrapped(model: nn.Module) -> nn.Module:
    """The module that the user wrote, where torch.compile put a wrapper around it."""
    inner: nn.Module = getattr(model, "_orig_mod", model)
    return inner


def module_facts(model: nn.Module, seen: SeenStep) -> list[ModuleFact]:
    """Submodules without children, and attention with what is below it put together; in the order of their names."""
    return [_fact(path, part, seen) for path, part in _telling(unwrapped(model))]


def _telling(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    inside = ""
    for path, part in model.named_modules():
        if inside and path.startswith(inside):
            continue
        if isinstance(part, STANDS_FOR_CHILDREN):
            inside = f"{path}."
            yield path, part
        elif next(part.children(), None) is None or "Attention" in type(part).__name__:
            yield path, part


def _fact(path: str, part: nn.Module, seen: SeenStep) -> ModuleFact:
    own = list(part.parameters(recurse=isinstance(part, STANDS_FOR_CHILDREN)))
    file, line = place_of_class(type(part))
    calls = seen.module_calls
    return ModuleFact(
        path=path,
        type_name=_type_name(type(part)),
        training=part.training,
        num_parameters=sum(num_elements(parameter) for parameter in own),
        dtype=next((name_of_dtype(tensor) for tensor in own if tensor.is_floating_point()), None),
        file=file,
        line=line,
        settings=dict(_settings(part)),
        channels_last=_is_channels_last(getattr(part, "weight", None)),
        calls=calls.get(id(part), 0) if seen.complete else None,
        follows=seen.path_before(part),
    )


def _type_name(kind: type) -> str:
    return kind.__name__ if kind.__module__.startswith("torch.nn") else f"{kind.__module__}.{kind.__name__}"


def place_of_class(kind: type) -> tuple[str | None, int | None]:
    """File and line of a class of the user's own that has a forward; nothing for one that is installed."""
    code = getattr(vars(kind).get("forward"), "__code__", None)
    if code is None or owner_of(code.co_filename) != "user":
        return None, None
    try:
        return code.co_filename, inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):  # the module is not registered, or the file is gone
        return code.co_filename, code.co_firstlineno


def _settings(part: nn.Module) -> Iterator[tuple[str, Setting]]:
    """What the constructor was given, as far as the module keeps it under the same name."""
    try:
        names = list(inspect.signature(type(part)).parameters)
    except (TypeError, ValueError):
        return
    if isinstance(part, nn.RNNBase):  # its constructor takes *args
        names = ["input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"]
    for name in names:
        if not hasattr(part, name):
            continue
        value = getattr(part, name)
        if name == "bias" and not isinstance(value, bool):
            yield name, value is not None
        elif value is None or isinstance(value, (int, float, str, bool)):
            yield name, value
        elif isinstance(value, tuple) and value and all(isinstance(item, int) for item in value):
            yield name, "x".join(map(str, value))


def _is_channels_last(weight: Any) -> bool:
    if not isinstance(weight, torch.Tensor) or weight.dim() != 4:
        return False
    return weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()


def wrappers_of(model: nn.Module) -> list[Wrapper]:
    """The wrappers for several ranks within a model."""
    wrappers = []
    for path, part in unwrapped(model).named_modules():
        names = [kind.__name__ for kind in type(part).__mro__]
        wrapper = next((name for name in (*WRAPPERS, "FSDPModule") if name in names), None)
        if wrapper is not None:
            settings = {name: _plain(getattr(part, name, None)) for name in WRAPPERS.get(wrapper, ())}
            wrappers.append(Wrapper(path=path, type_name=wrapper, settings=settings))
    return wrappers


def _plain(value: Any) -> Setting:
    return value if value is None or isinstance(value, (int, float, str, bool)) else str(value)


def parameter_dtypes(model: nn.Module) -> dict[str, int]:
    """Number of elements by dtype."""
    counts: Counter[str] = Counter()
    for parameter in model.parameters():
        counts[name_of_dtype(parameter)] += num_elements(parameter)
    return dict(counts)


def device_of(model: nn.Module) -> str:
    """Where the parameters lie: cpu, cuda, mixed, or none."""
    kinds = {parameter.device.type for parameter in model.parameters()}
    return "mixed" if len(kinds) > 1 else next(iter(kinds), "none")


def activations_of(model: nn.Module) -> dict[str, int]:
    """Activation modules by type."""
    return dict(
        Counter(
            type(part).__name__
            for part in model.modules()
            if type(part).__module__ == "torch.nn.modules.activation"
            and not isinstance(part, nn.MultiheadAttention)
        )
    )


def num_elements(tensor: torch.Tensor) -> int:
    """Elements of a tensor; 0 for one that has no shape yet."""
    return 0 if torch.nn.parameter.is_lazy(tensor) else tensor.numel()


def name_of_dtype(tensor: torch.Tensor) -> str:
    """Such as float32."""
    return str(tensor.dtype).removeprefix("torch.")


def initialised(model: nn.Module) -> dict[str, str]:
    """How the weights of linear and convolution layers look, judged by a sample of each.

    `default` is what torch fills them with: uniform within `1/sqrt(fan_in)`.
    """
    return {
        path: look_of(part.weight)
        for path, part in unwrapped(model).named_modules()
        if isinstance(part, WEIGHTED) and isinstance(part.weight, torch.Tensor)
    }


@torch.no_grad()
def look_of(weight: torch.Tensor) -> str:
    """`zero`, `constant`, `default` or `other`.

    >>> look_of(torch.zeros(3, 3)), look_of(torch.ones(3, 3)), look_of(nn.Linear(64, 64).weight)
    ('zero', 'constant', 'default')
    """
    if torch.nn.parameter.is_lazy(weight) or weight.is_meta or not weight.is_floating_point():
        return "other"
    sample = weight.detach().reshape(-1)[:: max(1, weight.numel() // SAMPLE)].double()
    if not sample.numel() or not bool((sample != 0).any()):
        return "zero"
    if bool((sample == sample[0]).all()):
        return "constant"
    bound = 1 / math.sqrt(max(weight[0].numel(), 1))
    spread = float(sample.square().mean().sqrt()) * math.sqrt(3) / bound
    # The root mean square of n uniform numbers scatters by 0.45/sqrt(n).
    likely = abs(spread - 1) < 5 * 0.45 / math.sqrt(sample.numel()) + 0.005
    within = float(sample.abs().max()) <= bound * (1 + 2**-7)  # rounding of bfloat16
    return "default" if likely and within else "other"

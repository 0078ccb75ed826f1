"""Changes to how a program is compiled, not to its code: what each does, and a way to apply it and to take it back.

The source of every figure in `effect` is the test of the same name; a program's own figure has to be measured.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from pyrometer.compiler.advice.record import CompileLever
from pyrometer.compiler.advice.regions import repeated_blocks
from pyrometer.compiler.private import marks, module_calls
from pyrometer.errors import InputError

STANCES = (
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
)


def compile_levers() -> list[CompileLever]:
    """Every lever, with what this torch lacks for it.

    >>> [lever.name for lever in compile_levers()]
    ['compile_blocks', 'share_regions', 'mark_dynamic', 'set_stance', 'preload_cache']
    """
    return [compile_blocks(), share_regions(), mark_dynamic(), set_stance(), preload_cache()]


def compile_blocks() -> CompileLever:
    """Compiling the repeated block instead of the whole model."""
    return CompileLever(
        name="compile_blocks",
        title="compile the repeated block, not the model",
        when="a model repeats one block many times, and compiling takes long",
        use="for block in model.blocks:\n    block.compile()",
        effect="one graph of one block serves all of them: compile time no longer grows with their number; nothing is fused "
        "across blocks, and each call of a block checks guards",
        exactness="tolerance",
        missing=next(iter(module_calls.missing()), None),
    )


def share_regions() -> CompileLever:
    """Compiling one body for all repeated blocks, inside of one graph."""
    return CompileLever(
        name="share_regions",
        title="compile repeated blocks once inside one graph",
        when="a model repeats one block many times, and is to stay one graph",
        use="Block.forward = torch.compiler.nested_compile_region(Block.forward)\nmodel = torch.compile(model)",
        effect="one body that is invoked many times: each block's operators are in the graph once; nothing is fused across blocks",
        exactness="tolerance",
        missing=_lacks("nested_compile_region"),
    )


def mark_dynamic() -> CompileLever:
    """Keeping sizes open from the first compilation on."""
    return CompileLever(
        name="mark_dynamic",
        title="say which sizes vary",
        when="a dimension varies from call to call, and the function is compiled again for it",
        use="torch._dynamo.mark_dynamic(x, 0)",
        effect="one compilation for all sizes of the dimension; compiling fails where the program ties the size down",
        exactness="tolerance",
        missing=next(iter(marks.missing()), None),
    )


def set_stance() -> CompileLever:
    """Deciding what happens with calls that fit no compiled graph."""
    return CompileLever(
        name="set_stance",
        title="say what happens with calls that fit no compiled graph",
        when="compiling in the middle of a run costs more than a slow call: serving, control loops, tests that allow no recompilation",
        use='with torch.compiler.set_stance("eager_on_recompile"):\n    ...',
        effect="no compilation after warm-up: such calls run eagerly in silence, or fail with `fail_on_recompile`",
        exactness="tolerance",
        missing=_lacks("set_stance"),
    )


def preload_cache() -> CompileLever:
    """Carrying compiled artifacts over to a machine that has not compiled the program yet."""
    return CompileLever(
        name="preload_cache",
        title="bring compiled artifacts along",
        when="the first call after a start takes long, on new machines or in new containers",
        use="found = torch.compiler.save_cache_artifacts()  # after warm-up, in the run that is to be kept\n"
        "torch.compiler.load_cache_artifacts(found[0])  # before the first call, in the next",
        effect="the first call reads generated code from the cache; tracing remains, and on a CPU the C++ compiler runs again",
        missing=_lacks("save_cache_artifacts"),
    )


@contextlib.contextmanager
def blocks_compiled(model: nn.Module, **options: Any) -> Iterator[list[str]]:
    """Hold the repeated blocks of a model compiled; everything else of it runs eagerly.

    Args:
        model: whose blocks to compile, in place.
        **options: for `torch.compile`.

    Yields:
        The names of the blocks.

    Raises:
        InputError: no block is repeated.
    """
    names = [name for group in _groups(model) for name in group]
    with module_calls.compiled_in_place([model.get_submodule(name) for name in names], **options):
        yield names


@contextlib.contextmanager
def regions_shared(model: nn.Module) -> Iterator[list[str]]:
    """Hold the classes of a model's repeated blocks marked: what is compiled meanwhile has one body for all of them.

    Yields:
        The names of the blocks.

    Raises:
        InputError: no block is repeated, or this torch cannot.
    """
    _require(_lacks("nested_compile_region"))
    groups = _groups(model)
    classes = {type(model.get_submodule(group[0])) for group in groups}
    before = {cls: cls.forward for cls in classes}
    own = {cls for cls in classes if "forward" in vars(cls)}
    try:
        for cls, forward in before.items():
            cls.forward = torch.compiler.nested_compile_region(forward)
        yield [name for group in groups for name in group]
    finally:
        for cls, forward in before.items():
            if cls in own:
                cls.forward = forward
            else:
                del cls.forward


def marked(tensors: Mapping[str, torch.Tensor], dims: Mapping[str, Iterable[int]]) -> dict[str, torch.Tensor]:
    """The tensors with their varying dimensions marked; others as they are. The marks are on aliases: the tensors stay unmarked.

    Raises:
        InputError: a dimension that a tensor does not have, or a name that is not among them.
    """
    for name, wanted in dims.items():
        have = tensors[name].dim() if name in tensors else None
        if have is None:
            raise InputError(f"mark {name!r}: there is no such tensor; there are {', '.join(tensors)}")
        if any(not -have <= dim < have for dim in wanted):
            raise InputError(f"mark {name!r}: dimensions {list(wanted)}; legal are {-have} to {have - 1}")
    found = {name: tensor.view_as(tensor) if name in dims else tensor for name, tensor in tensors.items()}
    for name, wanted in dims.items():
        marks.mark_dynamic(found[name], wanted)
    return found


@contextlib.contextmanager
def stance(name: str) -> Iterator[None]:
    """Hold a stance of torch.compile; the one from before holds again at the end.

    Raises:
        InputError: there is no such stance, or this torch has none.
    """
    _require(_lacks("set_stance"))
    if name not in STANCES:
        raise InputError(f"stance {name!r}: legal are {', '.join(STANCES)}")
    with torch.compiler.set_stance(name):
        yield


def saved_artifacts() -> bytes:
    """What was compiled in this process so far, to be loaded in another one.

    Raises:
        InputError: nothing was compiled by Inductor, or this torch cannot.
    """
    _require(_lacks("save_cache_artifacts"))
    found = torch.compiler.save_cache_artifacts()
    if not found:
        raise InputError("no artifacts: Inductor compiled nothing in this process; run the program first")
    return found[0]


def load_artifacts(artifacts: bytes) -> Sequence[str]:
    """Put artifacts into the cache that is in use; they stay there, as files in Inductor's folder.

    Returns:
        Their keys.

    Raises:
        InputError: these are no artifacts of this torch.
    """
    _require(_lacks("load_cache_artifacts"))
    found = torch.compiler.load_cache_artifacts(artifacts)
    if found is None:
        raise InputError(
            f"artifacts: {len(artifacts)} bytes that this torch cannot read; save them again with this version"
        )
    return [key for keys in found.artifacts.values() for key in keys]


def _groups(model: nn.Module) -> list[list[str]]:
    groups = repeated_blocks(model)
    if not groups:
        raise InputError(f"{type(model).__name__}: no block is repeated; compile the whole model")
    return groups


def _lacks(name: str) -> str | None:
    return None if hasattr(torch.compiler, name) else f"this torch has no torch.compiler.{name}"


def _require(lack: str | None) -> None:
    if lack is not None:
        raise InputError(lack)

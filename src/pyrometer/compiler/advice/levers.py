"""Changes to how a program is compiled, not to its code: what each does, and how to try it.

The source of every figure in `effect` is the test of the same name; a program's own figure has to be measured.
"""

from __future__ import annotations

import torch

from pyrometer.advice import Advice
from pyrometer.compiler.private import marks

_NEEDED = {
    "share_regions": "nested_compile_region",
    "set_stance": "set_stance",
    "preload_cache": "save_cache_artifacts",
}
"""What a lever takes of `torch.compiler`."""


def compile_blocks() -> Advice:
    """Compiling the repeated block instead of the whole model."""
    return Advice(
        slug="compile-blocks",
        lever="compile_blocks",
        title="compile the repeated block, not the model",
        why="a model repeats one block many times, and compiling takes long",
        sketch="for block in model.blocks:\n    block.compile()",
        effect="one graph of one block serves all of them: compile time no longer grows with their number; nothing is fused "
        "across blocks, and each call of a block checks guards",
        fix_class="tolerance",
    )


def share_regions() -> Advice:
    """Compiling one body for all repeated blocks, inside of one graph."""
    return Advice(
        slug="share-regions",
        lever="share_regions",
        title="compile repeated blocks once inside one graph",
        why="a model repeats one block many times, and is to stay one graph",
        sketch="Block.forward = torch.compiler.nested_compile_region(Block.forward)\nmodel = torch.compile(model)",
        effect="one body that is invoked many times: each block's operators are in the graph once; nothing is fused across blocks",
        fix_class="tolerance",
    )


def mark_dynamic() -> Advice:
    """Keeping sizes open from the first compilation on."""
    return Advice(
        slug="mark-dynamic",
        lever="mark_dynamic",
        title="say which sizes vary",
        why="a dimension varies from call to call, and the function is compiled again for it",
        sketch="torch._dynamo.mark_dynamic(x, 0)",
        effect="one compilation for all sizes of the dimension; compiling fails where the program ties the size down",
        fix_class="tolerance",
    )


def set_stance() -> Advice:
    """Deciding what happens with calls that fit no compiled graph."""
    return Advice(
        slug="set-stance",
        lever="set_stance",
        title="say what happens with calls that fit no compiled graph",
        why="compiling in the middle of a run costs more than a slow call: serving, control loops, tests that allow no recompilation",
        sketch='with torch.compiler.set_stance("eager_on_recompile"):\n    ...',
        effect="no compilation after warm-up: such calls run eagerly in silence, or fail with `fail_on_recompile`",
        fix_class="tolerance",
    )


def preload_cache() -> Advice:
    """Carrying compiled artifacts over to a machine that has not compiled the program yet."""
    return Advice(
        slug="preload-cache",
        lever="preload_cache",
        title="bring compiled artifacts along",
        why="the first call after a start takes long, on new machines or in new containers",
        sketch="saved = torch.compiler.save_cache_artifacts()  # after warm-up, in the run that is to be kept\n"
        "torch.compiler.load_cache_artifacts(saved[0])  # before the first call, in the next",
        effect="the first call reads generated code from the cache; tracing remains, and on a CPU the C++ compiler runs again",
        fix_class="exact",
    )


def missing(lever: Advice) -> str | None:
    """Why this torch cannot; `None` if it can."""
    if lever.lever == "mark_dynamic":
        return next(iter(marks.missing()), None)
    name = _NEEDED.get(lever.lever or "")
    return (
        None if name is None or hasattr(torch.compiler, name) else f"this torch has no torch.compiler.{name}"
    )

"""Changes to how a program is compiled, not to its code: what each does, and how to try it.

The source of every figure in `effect` is the test of the same name; a program's own figure has to be measured.
"""

from __future__ import annotations

import torch

from pyrometer.compiler.advice.record import CompileLever
from pyrometer.compiler.private import marks


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
        use="saved = torch.compiler.save_cache_artifacts()  # after warm-up, in the run that is to be kept\n"
        "torch.compiler.load_cache_artifacts(saved[0])  # before the first call, in the next",
        effect="the first call reads generated code from the cache; tracing remains, and on a CPU the C++ compiler runs again",
        missing=_lacks("save_cache_artifacts"),
    )


def _lacks(name: str) -> str | None:
    return None if hasattr(torch.compiler, name) else f"this torch has no torch.compiler.{name}"

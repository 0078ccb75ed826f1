"""Changes to how a program is compiled, not to its code: what each does, and how to try it.

The source of every figure in `effect` is the test of the same name; a program's own figure has to be measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyrometer.advice import Advice
from pyrometer.compiler.advice.varying import VaryingSize, mark_statements


def compile_blocks(lists: Sequence[str] = ("blocks",)) -> Advice:
    """Compiling the repeated block instead of the whole model.

    Args:
        lists: qualified names of the modules that hold the repeated blocks.
    """
    return Advice(
        slug="compile-blocks",
        lever="compile_blocks",
        title="compile the repeated block, not the model",
        why="a model repeats one block many times, and compiling takes long",
        sketch="\n".join(f"for block in {_in_model(name)}:\n    block.compile()" for name in lists),
        effect="one graph of one block serves all of them: compile time no longer grows with their number; nothing is fused "
        "across blocks, and each call of a block checks guards",
        fix_class="tolerance",
    )


def share_regions(lists: Sequence[str] = ("blocks",)) -> Advice:
    """Compiling one body for all repeated blocks, inside of one graph.

    Args:
        lists: qualified names of the modules that hold the repeated blocks.
    """
    return Advice(
        slug="share-regions",
        lever="share_regions",
        title="compile repeated blocks once inside one graph",
        why="a model repeats one block many times, and is to stay one graph",
        sketch="".join(
            f"Block = type({_in_model(name)}[-1])\nBlock.forward = torch.compiler.nested_compile_region(Block.forward)\n"
            for name in lists
        )
        + "model = torch.compile(model)",
        effect="one body that is invoked many times: each block's operators are in the graph once; nothing is fused across blocks",
        fix_class="tolerance",
    )


def mark_dynamic(sizes: Sequence[VaryingSize] = (VaryingSize("x", 0, (), is_argument=True),)) -> Advice:
    """Keeping sizes open from the first compilation on.

    Args:
        sizes: those that were seen to vary.
    """
    return Advice(
        slug="mark-dynamic",
        lever="mark_dynamic",
        title="say which sizes vary",
        why="a dimension varies from call to call, and the function is compiled again for it",
        sketch=mark_statements(sizes),
        effect="one compilation for all sizes of the dimension; compiling fails where the program ties the size down",
        fix_class="tolerance",
    )


def compile_dynamic() -> Advice:
    """Compiling for any size, without saying which vary."""
    return Advice(
        slug="compile-dynamic",
        lever="dynamic",
        title="compile for any size",
        why="sizes vary from call to call, and the function is compiled again for them",
        sketch="model = torch.compile(model, dynamic=True)",
        effect="one compilation for all sizes but 0 and 1, of every dimension; code for any size may be slower than code for one",
        fix_class="tolerance",
    )


def shape_buckets(axes: Mapping[str, Mapping[int, str]]) -> Advice:
    """Padding to a few sizes, each compiled once.

    Args:
        axes: names of the dimensions that vary, by input.
    """
    return Advice(
        slug="shape-buckets",
        lever="shape_buckets",
        title="pad to a few sizes",
        why="sizes vary from call to call, and the function is compiled again for them",
        sketch="# which is faster here, buckets, one size or dynamic: pyrometer compile TARGET --shapes SHAPES.jsonl\n"
        f"model = pm.ShapeBuckets(model, {dict(axes)!r})",
        effect="few graphs, each for a size of its own and checked against the model; padding is computed too, so that it has to "
        "be measured",
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


def _in_model(name: str) -> str:
    """How a program reaches a module: numbers in its name are items.

    >>> _in_model("encoder.layers"), _in_model("stages.0.blocks")
    ('model.encoder.layers', 'model.stages[0].blocks')
    """
    return "model" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in name.split("."))

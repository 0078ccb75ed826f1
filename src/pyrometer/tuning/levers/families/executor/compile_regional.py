"""`compile_regional`: the repeated blocks of a model behind `torch.compile`, and nothing else."""

from __future__ import annotations

from torch import nn

from pyrometer.bench.dynamo import graph_counts
from pyrometer.tuning.levers.families.executor.compile import uncompilable
from pyrometer.tuning.levers.lever import Executor, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.variant import is_compiled

_FEWEST = 2


@lever
class CompileRegional(Executor):
    """Compile the blocks that a model repeats; one graph serves them all."""

    name = "compile_regional"
    title = "compile the repeated blocks only"
    why = (
        "The blocks of a transformer or of a stage are alike: the first is compiled, the others use its code. The first call "
        "takes a fraction of the time that compiling the whole takes; what lies between blocks is not fused."
    )
    stage = "compile"
    prior = 0.85
    minutes = 0.5
    pasted = (
        "for block in model.layers:  # the list of repeated blocks, as your model names it",
        "    block.compile()",
    )

    def refuses(self, subject: Subject) -> str | None:
        """A model without repeated blocks, or one that comes compiled."""
        if not repeated_blocks(subject.model):
            return "no block is repeated: no list of modules holds several of one class that have parts of their own"
        return uncompilable(subject)

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Compile each block in place; nothing is compiled before the first call."""
        for block in repeated_blocks(subject.model):
            block.compile()

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Each block is compiled, and Dynamo captured a graph."""
        left = [block for block in repeated_blocks(subject.model) if not is_compiled(block)]
        if left:
            return f"{len(left)} blocks are not compiled"
        counts = graph_counts()
        captured = counts is None or counts.num_graphs > 0
        return None if captured else "no graph was captured: the blocks run as before"


def repeated_blocks(model: nn.Module) -> list[nn.Module]:
    """Modules of one class within a list or sequence that have parts of their own; of nested lists the outermost."""
    parts = list(model.children())
    is_list = isinstance(model, (nn.ModuleList, nn.Sequential)) and len(parts) >= _FEWEST
    if is_list and len({type(part) for part in parts}) == 1 and all(map(_has_parts, parts)):
        return parts
    return list(dict.fromkeys(block for part in parts for block in repeated_blocks(part)))


def _has_parts(module: nn.Module) -> bool:
    return next(module.children(), None) is not None

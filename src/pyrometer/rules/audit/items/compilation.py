"""Items about torch.compile."""

from __future__ import annotations

from pyrometer.rules.audit.applicable import COMPILERS, needs_compiled, needs_words
from pyrometer.rules.audit.item import Item, proof_of, source_read
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Value


def _repaid(case: Case) -> dict[str, Value] | None:
    compiled = case.compiled
    known = compiled is not None and compiled.evaluation is not None
    return {"compared_with_eager": True} if known else None


def _same(case: Case) -> dict[str, Value] | None:
    error = case.compiled.error if case.compiled is not None else None
    return {"largest_error": error.max_abs} if error is not None else None


COMPILATION = (
    Item(
        code="A501",
        title="What is compiled is one graph",
        rules=("PYR401", "PYR412"),
        family="compilation",
        proof=proof_of("compiled", graphs=lambda it: it.graphs, breaks=lambda it: len(it.breaks)),
        applies=needs_compiled,
        needed="what torch.compile did",
    ),
    Item(
        code="A502",
        title="Nothing is compiled again once warm",
        rules=("PYR402", "PYR403", "PYR404", "PYR407", "PYR413"),
        proof=proof_of("compiled", recompilations=lambda compiled: len(compiled.recompiles)),
        applies=needs_compiled,
        needed="what torch.compile did",
    ),
    Item(
        code="A503",
        title="Compiling repays itself, before traffic",
        rules=("PYR405", "PYR406", "PYR411", "PYR416"),
        proof=_repaid,
        applies=needs_compiled,
        needed="eager beside compiled, as `pyrometer compile TARGET --modes` measures",
    ),
    Item(
        code="A504",
        title="No debugging aid of the compiler is left on",
        rules=("PYR408", "PYR415"),
        proof=source_read,
        applies=needs_words(COMPILERS, "the program neither compiles nor sets an aid of debugging"),
        needed="the program's source",
    ),
    Item(
        code="A505",
        title="Compiled results equal eager ones",
        rules=("PYR409", "PYR708"),
        proof=_same,
        applies=needs_compiled,
        needed="eager beside compiled results, as `pyrometer compile` takes",
    ),
)

"""Recompilations of one function for one reason, taken together; and which rule speaks of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pyrometer.compiler.advice.varying import alike_changes
from pyrometer.place import Place
from pyrometer.quantity import Seconds, counted, format_seconds
from pyrometer.rules.finding import Value

if TYPE_CHECKING:
    from pyrometer.compiler.recompiles.record import ChangedInput, Recompile
    from pyrometer.compiler.report import CompileReport

Reason = Literal["module state", "property", "mode", "other"]

PROPERTIES = frozenset(
    ["dtype", "device", "stride", "storage_offset", "requires_grad", "dispatch", "global_state"]
)
"""What a tensor or the call's surroundings are, apart from sizes and values."""

SHOWN = 4
"""Values that a sentence names."""


class Recompilations(NamedTuple):
    """All recompilations of one function that the same input made necessary."""

    reason: Reason
    recompiles: list[Recompile]
    numbers: list[int]
    """Where they stand in the report."""
    changed: ChangedInput | None
    """The input, as of the last of them; `None` where torch tells only a guard."""

    @property
    def last(self) -> Recompile:
        """The latest of them."""
        return self.recompiles[-1]

    @property
    def compile_s(self) -> Seconds:
        """What they took together."""
        return sum(recompile.compile_s or 0.0 for recompile in self.recompiles)

    @property
    def guard(self) -> str:
        """The first guard that failed, in torch's words."""
        return next((cause.guard for cause in self.last.causes if cause.guard), "")

    @property
    def values(self) -> list[str]:
        """What the input was, in the order in which it was met."""
        found = [
            value
            for recompile in self.recompiles
            for changed in recompile.changed_inputs
            if self.changed is not None and changed.source == self.changed.source
            for value in (*changed.before, changed.after)
        ]
        return list(dict.fromkeys(found))

    @property
    def what(self) -> str:
        """The input with its values, as a sentence names it."""
        if self.changed is None:
            return self.guard or "torch tells no reason"
        values = self.values
        shown = [*values[: SHOWN - 1], "…", values[-1]] if len(values) > SHOWN else values
        groups = alike_changes(self.last.changed_inputs)
        alike = next((len(group) for group in groups if self.changed in group), 1) - 1
        return f"{self.changed.name}: {' → '.join(shown)}" + (f", and {alike} more alike" if alike else "")

    def told(self, *, would: bool) -> str:
        """That and how long the function was compiled again, as a sentence begins; `would` where nobody compiles it yet."""
        again = f"compiled {counted(len(self.recompiles), 'more time')} in {format_seconds(self.compile_s)}"
        return f"{self.last.function} {'would be' if would else 'was'} {again}"

    @property
    def figures(self) -> dict[str, Value]:
        """What each finding about it rests on."""
        return {
            "recompiles": len(self.recompiles),
            "compile_s": self.compile_s,
            "guard": self.guard,
            "values": self.values,
        }

    @property
    def place(self) -> Place:
        """The function that was compiled again."""
        return Place(file=self.last.file, line=self.last.line, function=self.last.function)

    @property
    def callers(self) -> list[str]:
        """The lines of the calls that needed a compilation, the innermost line of each."""
        lines = [recompile.called_from[-1].text for recompile in self.recompiles if recompile.called_from]
        return list(dict.fromkeys(lines))

    @property
    def links(self) -> list[str]:
        """Where they stand in the stored document."""
        return [f"/compiled/recompiles/{number}" for number in self.numbers]


def recompilations(report: CompileReport, reason: Reason) -> Iterator[Recompilations]:
    """Groups of recompilations for one kind of reason: one per function and input."""
    groups: dict[tuple[object, ...], Recompilations] = {}
    for number, recompile in enumerate(report.recompiles):
        found, changed = _reason(recompile)
        if found != reason:
            continue
        what = changed.name if changed is not None else "guard"
        key = (recompile.file, recompile.line, recompile.function, what)
        known = groups.get(key, Recompilations(reason, [], [], changed))
        groups[key] = known._replace(
            recompiles=[*known.recompiles, recompile], numbers=[*known.numbers, number], changed=changed
        )
    yield from groups.values()


def _reason(recompile: Recompile) -> tuple[Reason, ChangedInput | None]:
    """What decides where several things changed at once: state first, as it changes again, then properties, then the rest."""
    changed = recompile.changed_inputs
    state = next(filter(_is_state, changed), None)
    if state is not None:
        return "module state", state
    known = next((changed_input for changed_input in changed if _is_property(changed_input)), None)
    if known is not None:
        return "property", known
    if not changed:
        kinds = {cause.kind for cause in recompile.causes}
        return ("property" if kinds & PROPERTIES else "mode" if kinds == {"training"} else "other"), None
    others = [changed_input for changed_input in changed if changed_input.kind != "training"]
    return ("other", others[0]) if others else ("mode", changed[0])


def _is_state(changed: ChangedInput) -> bool:
    """An integer attribute of a module: torch opens floats and arguments after a second value, these never."""
    values = [*changed.before, changed.after]
    return changed.kind == "attribute" and not changed.became_dynamic and all(map(_is_integer, values))


def _is_property(changed: ChangedInput) -> bool:
    return changed.kind in PROPERTIES or (changed.kind == "type" and _are_tensors(changed))


def _are_tensors(changed: ChangedInput) -> bool:
    return all(value.startswith("torch.") for value in (*changed.before, changed.after))


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdigit()


def strict_words(report: CompileReport, sources: Sequence[str]) -> str | None:
    """What the report says about the guard on one of these expressions: what it ties down, and what to do."""
    return next((guard.why for guard in report.guards.strict if guard.source in sources), None)

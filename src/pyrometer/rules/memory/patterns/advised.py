"""What the memory profile rehearsed: each piece of advice with its saving, as findings carry it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import FixClass, Gain
from pyrometer.place import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyrometer.memory.advice.record import Advice
    from pyrometer.rules.case import Case

_LEVERS = {
    "activation-checkpointing": "checkpointing",
    "micro-batching": "accumulate",
    "bf16-autocast": "autocast_bf16",
}
"""What tuning can try by itself."""

_EXACT = frozenset(["let-go-earlier", "offload-saved-tensors"])
_SEMANTIC = frozenset(
    [
        "bf16-parameters",
        "optimizer-adafactor",
        "optimizer-sgd",
        "optimizer-8bit",
        "stale-optimizer-state",
        "step-in-backward",
    ]
)


class Advised(NamedTuple):
    """One rehearsed piece of advice."""

    number: int
    """In the profile's list."""
    advice: Advice

    @property
    def saves_bytes(self) -> int:
        """Of the peak; 0 where it was not rehearsed."""
        return self.advice.saves_bytes or 0

    @property
    def link(self) -> str:
        """Where the run's record holds it."""
        return f"/memory/advice/{self.number}"

    @property
    def gain(self) -> Gain | None:
        """The rehearsed saving; `None` where there is no figure."""
        if self.advice.saves_bytes is None:
            return None
        how = (
            "ran changed" if self.advice.proved == "measured" else "replayed, or ran on tensors without data"
        )
        return Gain(saves_bytes=self.advice.saves_bytes, method=f"rehearsed: the step {how}")

    @property
    def lever(self) -> str | None:
        """The change that tuning can try."""
        if self.advice.slug == "optimizer-implementation" and "fused=True" in self.advice.use:
            return "fused_optimizer"
        return _LEVERS.get(self.advice.slug)

    @property
    def fix_class(self) -> FixClass:
        """What following it may change in the results."""
        if self.advice.slug in _SEMANTIC or "trains otherwise" in self.advice.effect:
            return "semantic"
        return "exact" if self.advice.slug in _EXACT else "tolerance"

    @property
    def sentence(self) -> str:
        """What to do and what that changes."""
        title = self.advice.title
        return f"{title[:1].upper()}{title[1:]}: {self.advice.effect}."

    @property
    def place(self) -> Place:
        """The line that it concerns the most; without one, nowhere."""
        return Place(file=self.advice.file, line=self.advice.line)


def advised(case: Case, *slugs: str) -> Iterator[Advised]:
    """The rehearsed advice of these kinds, the largest saving first."""
    if case.memory is not None:
        for number, advice in enumerate(case.memory.advice):
            if advice.slug in slugs:
                yield Advised(number, advice)

"""The versions of a model that are loaded, and which of them takes the next batch."""

from __future__ import annotations

from collections.abc import Callable

from pyrometer.errors import InputError
from pyrometer.serving.running.program import Program

Choose = Callable[[], str]
"""Names the version of the next batch."""


class Versions:
    """Changed between two batches, so that each batch runs in one version from its first request to its last.

    Args:
        first: takes all batches at first.
    """

    def __init__(self, first: Program) -> None:
        self._programs = {first.version: first}
        self.current = first.version
        self.shadow: str | None = None
        self._choose: Choose | None = None
        self.choose_shadow: Callable[[], str | None] = lambda: self.shadow

    @property
    def names(self) -> list[str]:
        """Of all that are loaded."""
        return list(self._programs)

    def add(self, program: Program) -> None:
        """Load one more beside the others; it takes no batch yet.

        Raises:
            InputError: its inputs are others than those of the present one.
        """
        known = self._programs[self.current].signature
        if program.signature.inputs != known.inputs:
            raise InputError(
                f"version {program.version}: takes {_told(program)}; version {self.current} takes "
                f"{_told(self._programs[self.current])}, and requests fit only one of them"
            )
        self._programs[program.version] = program

    def swap(self, program: Program) -> list[str]:
        """Let a new version take all batches from now on; the one before stays for a way back.

        Returns:
            The versions that went, whose models nobody asks any more.

        Raises:
            InputError: its inputs are others, or a canary is under way.
        """
        if self._choose is not None:
            raise InputError(
                f"version {program.version}: a canary is under way; end it before the next version"
            )
        self.add(program)
        before, self.current = self.current, program.version
        gone = [name for name in self._programs if name not in {before, self.current, self.shadow}]
        for name in gone:
            del self._programs[name]
        return gone

    def route(self, choose: Choose, choose_shadow: Callable[[], str | None] = lambda: None) -> None:
        """Let something else choose the version of each batch, and who computes it beside, unseen."""
        self._choose, self.choose_shadow = choose, choose_shadow

    def get(self, version: str | None) -> Program:
        """A version by its name; without one, that of the next batch.

        Raises:
            InputError: there is none of this name.
        """
        name = version or (self._choose() if self._choose is not None else self.current)
        program = self._programs.get(name)
        if program is None:
            raise InputError(f"version {name[:80]}: is not loaded; legal are {', '.join(self._programs)}")
        return program


def _told(program: Program) -> str:
    return ", ".join(f"{spec.name} {spec.datatype}{list(spec.dims)}" for spec in program.signature.inputs)

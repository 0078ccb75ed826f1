"""What a place is given and what it returns, call by call, in a few steps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pyrometer.bench.cutting.values import (
    CONSTANTS,
    Fingerprints,
    Same,
    bytes_of,
    form_of,
    is_plain_tensor,
    kept,
    leaves_of,
    mapped,
)
from pyrometer.quantity import format_bytes

MOST_KEPT = 256 << 20
"""Bytes of results that are kept for one place."""

MOST_COMPARED = 32 << 20
"""Bytes of arguments and results that are compared in each step, for one place."""


@dataclass
class Call:
    """One call: forms and contents of what was given and returned, and a copy of what was returned."""

    given: Any
    given_print: list[Any] | None
    returned: Any
    returned_print: list[Any] | None
    lasting: list[Any]
    value: Any
    owner: Any
    returns_data: bool

    def stands_for(self, other: Call) -> bool:
        """Whether what it returned can be handed out where the other was made."""
        return (self.given, self.returned, self.lasting) == (other.given, other.returned, other.lasting)


class Recorder:
    """Records the calls of a place in the steps of one thread; of calls within calls the outermost.

    Attributes:
        calls: of the last step that ran with the program's own inputs.
        problem: why the place cannot be cut out, as far as the calls tell.
        neglected: what it does beside returning something, which is left undone while it is cut out.
        same_inputs: it was given the same in every step so far.
        same_results: it returned the same in every step so far, and not nothing.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.problem: str | None = None
        self.neglected: str | None = None
        self.same_inputs = True
        self.same_results = True
        self.keeps_values = True
        self._before: list[Call] | None = None
        self._stepping: int | None = None
        self._depth = 0

    def begin(self) -> None:
        """A step begins in this thread."""
        self._now: list[Call] = []
        self._kept, self._depth = 0, 0
        self._prints = Fingerprints(MOST_COMPARED)
        self._stepping = threading.get_ident()

    @property
    def is_constant(self) -> bool:
        """Whether it may be given and return the same in each step."""
        return self.same_inputs and self.same_results

    def end(self, *, complete: bool, own_inputs: bool) -> None:
        """The step is over, or it raised: compare it with the one before; later ones may have other inputs."""
        self._stepping = None
        if not complete:
            self.same_inputs = self.same_results = False
            return
        before, self._before = self._before, self._now
        if before is not None:
            self._compare(before, own_inputs=own_inputs)
        elif not self._now:
            self.problem = "it is not called in each step"
        if own_inputs:
            self.calls = self._now

    def _compare(self, before: list[Call], *, own_inputs: bool) -> None:
        now = self._now
        if own_inputs and len(now) != len(before):
            self.problem = f"it is called {len(before)} times in one step and {len(now)} in the next"
        elif own_inputs and not all(map(Call.stands_for, now, before)):
            self.problem = "from step to step it is given, or returns, other shapes or types"
        pairs = list(zip(now, before, strict=False)) if len(now) == len(before) else []
        told = bool(pairs)
        self.same_inputs &= told and all(_equal(a.given_print, b.given_print) for a, b in pairs)
        self.same_results &= told and all(_equal(a.returned_print, b.returned_print) for a, b in pairs)
        self.same_results &= any(call.returns_data for call in now)

    def __call__(self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call it and take note."""
        thread = threading.get_ident()
        if self._stepping != thread or self._depth:
            if self._stepping not in {None, thread}:
                self.problem = "it is called from other threads, too"
            return original(*args, **kwargs)
        self._depth += 1
        try:
            given = form_of((args, kwargs)), self._print_of((args, kwargs), wanted=self.same_inputs)
            result = original(*args, **kwargs)
            self._now.append(self._call(args, kwargs, given, result))
        except Exception:
            self.problem = "it raises what is caught elsewhere"
            raise
        finally:
            self._depth -= 1
        return result

    def _print_of(self, value: Any, *, wanted: bool) -> list[Any] | None:
        return self._prints.of(value) if wanted else None

    def _call(self, args: Any, kwargs: Any, given: tuple[Any, Any], result: Any) -> Call:
        form, given_print = given
        if self._before is None:
            after = self._print_of((args, kwargs), wanted=given_print is not None)
            if form_of((args, kwargs)) != form or after != given_print:
                self.neglected = "it changes what it is given"
            elif result is None:
                self.neglected = "it returns nothing, so that it must do something else"
        self._kept += bytes_of(result) if self.keeps_values else 0
        if self._kept > MOST_KEPT:
            self.problem = f"it returns more than {format_bytes(MOST_KEPT)} in a step"
        leaves = leaves_of(result)
        odd = next((leaf for leaf in leaves if _cannot_be_copied(leaf)), None)
        if odd is not None:
            self.problem = f"it returns a {type(odd).__name__}, which cannot be handed out again"
        return Call(
            given=form,
            given_print=given_print,
            returned=form_of(result),
            returned_print=self._print_of(result, wanted=self.same_results),
            lasting=[Same(leaf) for leaf in leaves if not _is_data(leaf) and not isinstance(leaf, CONSTANTS)],
            value=mapped(result, _copied) if self.keeps_values and not self.problem else None,
            owner=args[0] if args else None,
            returns_data=any(map(_is_data, leaves)),
        )


def _equal(one: list[Any] | None, other: list[Any] | None) -> bool:
    return one is not None and one == other


def _is_data(leaf: Any) -> bool:
    return isinstance(leaf, (torch.Tensor, np.ndarray))


def _cannot_be_copied(leaf: Any) -> bool:
    if isinstance(leaf, torch.Tensor):
        return not is_plain_tensor(leaf)
    return isinstance(leaf, np.ndarray) and leaf.dtype.hasobject


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return kept(leaf).requires_grad_(leaf.requires_grad)
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf

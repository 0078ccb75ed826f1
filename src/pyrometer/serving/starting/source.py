"""What is served: a target, with the recipe that was proved for it, or a workload from memory."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

from pyrometer.errors import InputError
from pyrometer.tuning.recipe.recipe import Recipe, load_recipe
from pyrometer.workload.importing import imported_anew
from pyrometer.workload.inference import Inference
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target


class Source(NamedTuple):
    """Where a version comes from.

    Attributes:
        target: as on the command line; empty for a workload from memory.
        recipe: a file, or none.
        work: a workload from memory, or none.
    """

    target: str = ""
    recipe: Path | None = None
    work: Inference | None = None

    @property
    def may_change(self) -> bool:
        """Whether loading it again may give something else."""
        return self.work is None

    def name(self) -> str:
        """How the model is called where nobody says otherwise: the factory, or the file."""
        if self.work is not None:
            return self.work.name
        return _in_paths(self.target.rpartition(":")[2] if ":" in self.target else Path(self.target).stem)


def source_of(text: str, recipe: Path | None = None) -> Source:
    """A target or a recipe, as named on the command line; a recipe names its target.

    Raises:
        InputError: the recipe cannot be read.
    """
    if not text.endswith(".toml"):
        return Source(target=text, recipe=recipe)
    if recipe is not None:
        raise InputError(f"{text}: is a recipe, and so is --recipe {recipe}; name one")
    return Source(target=load_recipe(text).target, recipe=Path(text))


class Loaded(NamedTuple):
    """A version that is loaded and not yet open."""

    plain: Inference
    tuned: Inference
    recipe: Recipe | None


def load(source: Source, *, anew: bool = False) -> Loaded:
    """Load the target, and apply its recipe.

    Args:
        source: what to load.
        anew: import it as if for the first time, since its file may have changed.

    Raises:
        InputError: it is no inference, or the recipe does not fit it.
        UserProgramError: the user's code raised.
    """
    plain = source.work or _loaded(source.target, anew=anew)
    if source.recipe is None:
        return Loaded(plain, plain, None)
    recipe = load_recipe(source.recipe)
    if not recipe.levers:
        return Loaded(plain, plain, recipe)
    tuned = recipe.workload(plain)
    assert isinstance(tuned, Inference)
    return Loaded(plain, tuned, recipe)


def _loaded(text: str, *, anew: bool) -> Inference:
    target = parse_target(text)
    with imported_anew(target.place) if anew else contextlib.nullcontext():
        work = load_workload(target)
    if not isinstance(work, Inference):
        raise InputError(
            f"{text}: is a {type(work).__name__}; what is served is a forward pass: return (model, inputs) or pm.Inference"
        )
    return work


def _in_paths(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in text)

"""Running a script with a recipe: on ranks of this machine, to its end."""

from __future__ import annotations

import os
from pathlib import Path

from pyrometer.errors import InputError
from pyrometer.tuning.ranks.held import require_launcher
from pyrometer.tuning.recipe.recipe import load_recipe
from pyrometer.workload.ranks.launch import torchrun
from pyrometer.workload.script.child import run_child
from pyrometer.workload.target import Target


def run_with(path: Path, target: Target, num_ranks: int) -> int:
    """Run a script under torchrun with the levers of a recipe in force; what it prints is its own.

    Returns:
        torchrun's exit code.

    Raises:
        InputError: the recipe cannot be read or is for a workload of one process.
    """
    recipe = load_recipe(path)
    if recipe.num_ranks is None:
        raise InputError(f"{path}: this recipe is for a workload of one process; leave out --nproc")
    require_launcher()
    command = torchrun(
        num_ranks,
        "pyrometer.tuning.ranks.rank",
        "apply",
        str(path.resolve()),
        target.place,
        *target.spec.args,
    )
    code = run_child(command, dict(os.environ)).exit_code
    return code if code >= 0 else 128 - code

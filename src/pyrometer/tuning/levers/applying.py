"""Applying a configuration to a workload that is ours, and asking whether it is in force."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from pyrometer.errors import InputError, NotApplicableError
from pyrometer.quantity import Seconds
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.lever import missing_packages
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.levers.stages import Kind
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.inference import Inference
from pyrometer.workload.state import preserved_rng
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload


def subject_of(work: Workload, folder: Path) -> Subject:
    """A subject over a workload whose objects may be changed.

    Raises:
        InputError: it is neither an `Inference` nor a `Training`.
    """
    if not isinstance(work, (Inference, Training)):
        raise InputError(
            f"tune: got a workload of kind {type(work).__name__}; levers change models, so it must be an Inference or a Training"
        )
    subject = Subject(copy.copy(work), folder)
    if isinstance(work, Inference):
        subject.model.eval()
    return subject


def apply_levers(subject: Subject, configuration: Sequence[LeverChoice]) -> list[Seconds]:
    """Apply levers in their order; returns how long each took.

    Raises:
        NotApplicableError: a lever's package is missing, or its preconditions do not hold.
    """
    prices: list[Seconds] = []
    for choice in configuration:
        lever = find_lever(choice.lever)
        on_ranks = "it changes a script on many ranks: `pyrometer tune SCRIPT --nproc N --apply` runs it"
        reason = on_ranks if "ranks" in lever.kinds else missing_packages(lever) or lever.refuses(subject)
        if reason is not None:
            raise NotApplicableError(f"{choice.lever}: {reason}")
        begin = time.perf_counter()
        with preserved_rng(), torch.no_grad() if not subject.is_training else contextlib.nullcontext():
            lever.apply(subject, choice.parameters)
        prices.append(time.perf_counter() - begin)
    return prices


def not_applied(subject: Any, configuration: Sequence[LeverChoice]) -> str | None:
    """After the first call: which lever can be seen not to be in force, and why; `None` where all are."""
    for choice in configuration:
        reason = find_lever(choice.lever).not_applied(subject, choice.parameters)
        if reason is not None:
            return f"{choice.lever}: {reason}"
    return None


def tryable(
    subject: Any, names: Sequence[str], kind: Kind
) -> tuple[dict[str, str], dict[str, list[dict[str, Any]]]]:
    """Of some levers: why they may not be tried on a subject, or the parameters to try them with."""
    refused: dict[str, str] = {}
    choices: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        lever = find_lever(name)
        reason = None if kind in lever.kinds else f"it is for {' and '.join(sorted(lever.kinds))}"
        reason = reason or missing_packages(lever) or lever.refuses(subject)
        listed = [] if reason is not None else lever.choices(subject)
        if listed:
            choices[name] = [dict(parameters) for parameters in listed]
        else:
            refused[name] = reason or "it found nothing to change here"
    return refused, choices

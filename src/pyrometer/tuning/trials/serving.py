"""The worker's side: one configuration, held open in a process of its own, that answers one request after another."""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.bench.clock import clock_for
from pyrometer.bench.comparison.interleaving import Side, seed_all
from pyrometer.bench.measure import measure
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.memory import meter_for
from pyrometer.bench.worker import Ran, Run, answer_requests
from pyrometer.errors import InputError, PyrometerError
from pyrometer.record import Record
from pyrometer.tuning.levers.applying import apply_levers, not_applied, subject_of, tryable
from pyrometer.tuning.levers.subject import Subject
from pyrometer.tuning.recipe.signature import signature_of
from pyrometer.tuning.trials import protocol, results
from pyrometer.tuning.trials.cases import refreshed_source
from pyrometer.tuning.trials.composition import Composition, composition_of
from pyrometer.tuning.trials.sending import workload_from
from pyrometer.workload.failure import user_code
from pyrometer.workload.inference import Inference, InferenceSession
from pyrometer.workload.inputs import argument_source
from pyrometer.workload.loading import load_named
from pyrometer.workload.program.describe import multiplies_bfloat16
from pyrometer.workload.state import inference_mode
from pyrometer.workload.target import parse_target
from pyrometer.workload.training import Training
from pyrometer.workload.variant import is_compiled
from pyrometer.workload.workload import Session, Workload

_SEED = 0


def serve() -> None:
    """Answer requests from stdin until it is closed."""
    with contextlib.ExitStack() as stack:
        answer_requests(protocol.Request, OpenConfiguration(stack).answer)


class OpenConfiguration:
    """A workload with its levers applied, open and warm."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._subject: Subject
        self._work: Workload
        self._session: Session
        self._side: Side

    def answer(self, request: protocol.Request) -> Record:
        """Do what is asked."""
        handlers: dict[type[Any], Callable[[Any], Record]] = {
            protocol.Open: self._open,
            protocol.Save: self._save,
            protocol.Check: self._check,
            protocol.Score: self._score,
            Run: self._run,
            protocol.Peak: self._peak,
            protocol.Time: self._time,
            protocol.Survey: self._survey,
        }
        return handlers[type(request)](request)

    def _open(self, request: protocol.Open) -> protocol.Opened:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = request.cache
        work = workload_from(request.source)
        if request.fresh_seed is not None and isinstance(work, Inference):
            source, fixed = argument_source(work.inputs, torch.device("cpu"), work.config)
            if fixed:
                with work.open() as plain:
                    takes = functools.partial(results.takes, plain)
                    work.inputs = refreshed_source(source, request.fresh_seed, takes)
        # The peak counts from here: of loading and of what levers need only once nobody asks in production.
        self._subject = subject_of(work, Path(request.folder))
        self._subject.ready = {
            lever: [Path(path) for path in paths] for lever, paths in request.ready.items()
        }
        prices = apply_levers(self._subject, request.levers)
        for setting in self._subject.settings:
            self._stack.enter_context(setting())
        self._work = self._subject.finished()
        self._session = self._stack.enter_context(self._work.open())
        clock = clock_for(self._session.device)
        self._side = Side(self._work.name, self._session, clock)
        seed_all(_SEED)
        begin = time.perf_counter()
        self._side.batch(1)
        first_call_s = time.perf_counter() - begin
        reason = not_applied(self._subject, request.levers)
        gc.collect()
        self._meter = meter_for(self._session.device)
        self._meter.reset_peak()
        files = {lever: [str(path) for path in paths] for lever, paths in self._subject.artefacts.items()}
        return protocol.Opened(
            name=self._work.name,
            device=str(self._session.device),
            clock=clock.name,
            first_call_s=first_call_s,
            apply_s=prices,
            artefact_bytes=sum(Path(path).stat().st_size for paths in files.values() for path in paths),
            artefacts=files,
            not_applied=reason,
            fixed_shapes=self._subject.fixed_shapes,
        )

    def _save(self, request: protocol.Save) -> protocol.Done:
        place = Path(request.place)
        if isinstance(self._work, Training):
            results.save_learning(self._work, request.seed, place)
        else:
            assert isinstance(self._work, Inference)
            results.save_outputs(self._work, self._inference, request.seed, place)
        return protocol.Done()

    def _check(self, request: protocol.Check) -> protocol.Checked:
        place = Path(request.place)
        if isinstance(self._work, Training):
            return protocol.Checked(cases=results.check_learning(self._work, _SEED, place))
        fixed = self._subject.fixed_shapes
        return protocol.Checked(
            cases=results.check_outputs(self._inference, _SEED, place, fixed_shapes=fixed)
        )

    def _score(self, request: protocol.Score) -> protocol.Scored:
        metric: Any = load_named(parse_target(request.metric, cwd=Path(request.cwd)))
        if not callable(metric):
            raise InputError(
                f"metric: {request.metric} is a {type(metric).__name__}; it must be a function of the model"
            )
        model = self._subject.model if isinstance(self._work, Training) else self._inference.model
        blind = _blind_score(metric, model) if request.also_blind else None
        return protocol.Scored(value=_score(metric, model), blind=blind)

    @property
    def _inference(self) -> InferenceSession:
        assert isinstance(self._session, InferenceSession)
        return self._session

    def _run(self, request: Run) -> Ran:
        seed_all(request.seed)
        batch = self._side.batch(request.num_calls, watched=request.watched)
        return Ran.of(batch)

    def _peak(self, _: protocol.Peak) -> protocol.PeakRead:
        return protocol.PeakRead(peak_bytes=self._meter.peak())

    def _time(self, request: protocol.Time) -> Measurement:
        return measure(self._work, budget_s=request.budget_s, phases=False)

    def _survey(self, request: protocol.Survey) -> protocol.Surveyed:
        kind: Literal["inference", "training"] = "training" if self._subject.is_training else "inference"
        refused, choices = tryable(self._subject, request.levers, kind)
        inputs = () if self._subject.is_training else self._subject.example().tensors()
        return protocol.Surveyed(
            refused=refused,
            choices=choices,
            kind=kind,
            signature=signature_of(self._subject.model, inputs),
            device=_device_kind(self._subject.device),
            made_of=self._made_of(),
        )

    def _made_of(self) -> Composition:
        """Only on a CPU something is known of; and of code that is compiled, operators cannot be counted."""
        is_compiled_inside = any(map(is_compiled, self._subject.model.modules()))
        if self._subject.is_training or self._subject.device.type != "cpu" or is_compiled_inside:
            return Composition()
        return composition_of(self._inference)


def _device_kind(device: torch.device) -> str:
    return "cpu with bfloat16" if device.type == "cpu" and multiplies_bfloat16() else device.type


def _blind_score(metric: Callable[[nn.Module], Any], model: nn.Module) -> float | None:
    """The metric of a model that has learned nothing, with zeros in place of each output; `None` where it has none for that."""

    def zeros(_module: nn.Module, _args: Any, output: Any) -> Any:
        return pytree.tree_map_only(torch.Tensor, torch.zeros_like, output)

    with model.register_forward_hook(zeros):
        try:
            return _score(metric, model)
        except PyrometerError:  # such as a correlation, which constants have none with
            return None


def _score(metric: Callable[[nn.Module], Any], model: nn.Module) -> float:
    seed_all(_SEED)
    with user_code("the metric"), inference_mode(True):
        value = metric(model)
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise InputError(f"metric: it returned {value!r}; it must return a number, of which more is better")
    return float(value)

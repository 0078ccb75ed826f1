"""From a source to a version that may be served: loaded, tuned, proved, sized, and warm in every bucket."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.serving.batching.service_times import ServicePoint
from pyrometer.serving.running.program import Program
from pyrometer.serving.running.shaping import Shaping, told
from pyrometer.serving.running.signature import Signature, inputs_of, outputs_of
from pyrometer.serving.running.worker import Worker
from pyrometer.serving.settings import ServeSettings
from pyrometer.serving.starting.proving import example_rows, prove
from pyrometer.serving.starting.source import Loaded, Source, load
from pyrometer.tuning.batching.largest import largest_batch
from pyrometer.tuning.recipe.recipe import Recipe
from pyrometer.tuning.shapes.axes import Dims, parameters_of
from pyrometer.tuning.trials.gate import Numerics, coarsest
from pyrometer.workload.failure import described, user_code
from pyrometer.workload.inference import Inference, InferenceSession
from pyrometer.workload.inputs import Arguments, adapted, argument_source, fresh_copies, leading_dimension
from pyrometer.workload.surroundings import Surroundings
from pyrometer.workload.variant import Variant

SAMPLES = 12
"""Runs of each size from which service times are told."""
SIZING_S = 4.0
Say = Callable[[str], None]


@dataclass
class Prepared:
    """A version that is warm.

    Attributes:
        program: runs batches.
        most_rows: of a batch.
        limited_by: what keeps batches from being larger.
        points: measured service times.
        numerics: the proof.
        recipe: that was applied.
        threads: that the model computes with.
        notes: what whoever starts the server should know.
        stack: holds the model open; closing it restores what the target found.
    """

    program: Program
    most_rows: int
    limited_by: str
    points: list[ServicePoint]
    numerics: Numerics
    recipe: Recipe | None
    threads: int
    notes: list[str]
    stack: contextlib.ExitStack = field(repr=False)

    def close(self) -> None:
        """Let the model go."""
        self.stack.close()


@contextlib.contextmanager
def prepared_or_closed(stack: contextlib.ExitStack) -> Iterator[None]:
    """Close what was opened if preparing fails."""
    try:
        yield
    except BaseException:
        stack.close()
        raise


class Opened(NamedTuple):
    """A version whose models are open: as the user wrote it, and as it is served."""

    loaded: Loaded
    plain: InferenceSession
    tuned: InferenceSession
    stack: contextlib.ExitStack


class Preparing:
    """Prepares versions, each in a worker that the caller gives.

    Args:
        settings: limits.
        buckets: sizes that vary, with edges.
        say: is told how far it is.
    """

    def __init__(self, settings: ServeSettings, buckets: Dims, say: Say) -> None:
        self._settings = settings
        self._buckets = buckets
        self.say = say

    def prepare(
        self,
        source: Source,
        version: str,
        worker: Worker,
        *,
        anew: bool = False,
        most_rows: int | None = None,
    ) -> Prepared:
        """Do all of it.

        Args:
            source: what to load.
            version: how requests name it.
            worker: the thread that it will run in.
            anew: import the target as if for the first time.
            most_rows: rows of a batch, where they are decided already.

        Raises:
            PyrometerError: it cannot be served; says why.
        """
        self.say(f"loading {source.target or source.name()}")
        loaded = load(source, anew=anew)
        stack = contextlib.ExitStack()
        with prepared_or_closed(stack):
            opened = self._opened(loaded, stack)
            prepared: Prepared = worker.call(lambda: self._inside(opened, version, worker, most_rows))
            return prepared

    def _opened(self, loaded: Loaded, stack: contextlib.ExitStack) -> Opened:
        plain = stack.enter_context(loaded.plain.open())
        tuned = plain if loaded.tuned is loaded.plain else stack.enter_context(loaded.tuned.open())
        return Opened(loaded, plain, tuned, stack)

    def _inside(self, opened: Opened, version: str, worker: Worker, most_rows: int | None) -> Prepared:
        """What runs in the thread of the model, since compiled code and threads belong to it."""
        loaded, plain, tuned, stack = opened
        settings = self._settings
        notes: list[str] = []
        recipe = loaded.recipe
        worker.begin_with(
            settings.computing_threads,
            lambda: None if recipe is None else stack.enter_context(recipe.settings()),
        )
        if recipe is not None and settings.threads is None and _sets_threads(recipe):
            notes.append("threads are those of the recipe")
        shaping = Shaping(loaded.plain.model, self._buckets) if self._buckets else None
        program = self._described(loaded, tuned, version, worker, shaping)
        limited_by = "the running version" if most_rows is not None else "--batch"
        example = leading_dimension(program.signature.call) or 1
        if program.is_fixed:
            most_rows, limited_by = example, "the recipe, which fixes the shape"
            program.row_edges = (example,)
        elif most_rows is None:
            most_rows = settings.batch
        if most_rows is None:
            self.say("sizing the batch")
            threads = torch.get_num_threads()
            most_rows, limited_by = self._sized(loaded.tuned, program)
            torch.set_num_threads(threads)  # the sessions of the search leave behind what the target found
        if not program.is_fixed and _wants_few_shapes(loaded, tuned):
            program.row_edges = row_edges(most_rows)
        self.say("comparing with the model as it is")
        levers = [] if loaded.recipe is None else loaded.recipe.levers
        fix_class = coarsest([lever.fix_class for lever in levers])
        tolerance = max(settings.tolerance, loaded.recipe.tolerance if loaded.recipe else 0.0)
        numerics = prove(program, plain, fix_class, tolerance, most_rows)
        self.say("warming")
        points = measure(program, most_rows, settings.budget_s)
        return Prepared(
            program, most_rows, limited_by, points, numerics, recipe, torch.get_num_threads(), notes, stack
        )

    def _described(
        self, loaded: Loaded, session: InferenceSession, version: str, worker: Worker, shaping: Shaping | None
    ) -> Program:
        """The program with what it takes and gives, found out by two small batches."""
        work = loaded.plain
        with user_code("making the inputs"):
            call = argument_source(work.inputs, session.device, Variant())[0]()
        varying = {} if shaping is None else shaping.varying
        inputs = inputs_of(work.model, call, varying)
        positions = {name: place for place, name in enumerate(parameters_of(work.model) or {})}
        rows = leading_dimension(call) or 1
        sizes = (rows, rows + 1)
        with user_code("the model, on its example inputs,"):
            few = session.step(_copied(call))
        is_fixed = False
        try:
            more = session.step(adapted(_copied(call), Variant(batch_size=sizes[1])))
        except Exception as error:
            if loaded.recipe is None or not loaded.recipe.levers:
                raise InputError(
                    f"{work.name}: takes {rows} rows and fails on {sizes[1]} ({described(error)}); what is served takes any number"
                ) from error
            more, sizes, is_fixed = few, (rows, rows), True
        outputs, leaves = outputs_of(few, more, sizes)
        signature_outputs = tuple(replace(spec, dims=_varied(spec.dims, shaping)) for spec in outputs)
        return Program(
            version,
            session,
            Signature(inputs, signature_outputs, call, leaves),
            positions,
            worker=worker,
            shaping=shaping,
            is_fixed=is_fixed,
        )

    def _sized(self, work: Inference, program: Program) -> tuple[int, str]:
        """The largest batch within the limits, at the largest shapes."""
        settings = self._settings
        inputs = program.signature.call
        if program.shaping is not None:
            largest = program.shaping.edges()[0]
            inputs = program.shaping.padded(program.shaping.resized(inputs, largest), largest, largest)
        sizing = Inference(work.model, inputs, name=work.name)
        sizing.config, sizing.surroundings = work.config, Surroundings.current()
        found = largest_batch(
            sizing,
            budget=settings.memory_bytes,
            latency_s=settings.latency_s,
            budget_s=SIZING_S,
            most=settings.most_batch,
        )
        if found.batch is None:
            raise InputError(
                f"{found.sentence}; raise --latency or memory in [tool.pyrometer.serve], or give --batch 1"
            )
        limited = {"nothing": f"most-batch {settings.most_batch}", "trials": "the sizes that were tried"}
        return found.batch, limited.get(found.limited_by, f"--{found.limited_by}")


def row_edges(most_rows: int) -> tuple[int, ...]:
    """Powers of two up to a batch: few shapes to compile or to capture.

    >>> row_edges(12)
    (1, 2, 4, 8, 12)
    """
    edges = [1]
    while edges[-1] * 2 < most_rows:
        edges.append(edges[-1] * 2)
    return tuple(dict.fromkeys([*edges, most_rows]))


def measure(program: Program, most_rows: int, budget_s: Seconds) -> list[ServicePoint]:
    """Run every bucket at some numbers of rows: once to be warm, and then to tell what a batch takes."""
    buckets = program.shaping.edges() if program.shaping is not None else [()]
    rows = list(program.row_edges or row_edges(most_rows))
    requests = {
        (bucket, number): [example_rows(program, 1, bucket)] * number
        if not program.is_fixed
        else [example_rows(program, number, bucket)]
        for bucket in buckets
        for number in reversed(rows)
    }
    for (bucket, _), batch in requests.items():
        program.run(batch, bucket)
    samples: dict[tuple[tuple[int, ...], int], list[Seconds]] = {key: [] for key in requests}
    end_s = time.perf_counter() + budget_s
    for turn in range(SAMPLES):  # in turns, so that a busy moment of the machine falls on all
        for (bucket, number), batch in requests.items():
            started_s = time.perf_counter()
            program.run(batch, bucket)
            samples[bucket, number].append(time.perf_counter() - started_s)
        if time.perf_counter() > end_s and turn >= 2:
            break
    return [
        ServicePoint(bucket=told(bucket), rows=number, samples_s=taken)
        for (bucket, number), taken in sorted(samples.items())
    ]


def _sets_threads(recipe: Recipe) -> bool:
    return any(lever.lever == "threads" for lever in recipe.levers)


def _wants_few_shapes(loaded: Loaded, session: InferenceSession) -> bool:
    """Compiled code and captured graphs are made per shape; eager code on the CPU takes any."""
    has_levers = loaded.recipe is not None and bool(loaded.recipe.levers)
    return has_levers or session.device.type != "cpu" or hasattr(session.model, "_orig_mod")


def _copied(call: Arguments) -> Arguments:
    copies = fresh_copies((call.args, call.kwargs))
    return call if copies is None else Arguments(*copies)


def _varied(dims: tuple[int, ...], shaping: Shaping | None) -> tuple[int, ...]:
    """With buckets any size of an output but the last of all may follow that of the inputs; the proof finds which do."""
    return dims if shaping is None else tuple(-1 for _ in dims)

"""What a parent asks of a worker, and what it gets: records, one a line."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pyrometer.bench.worker import Run
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.recipe.signature import Signature
from pyrometer.tuning.trials.composition import Composition
from pyrometer.tuning.trials.gate import CaseError
from pyrometer.workload.target import TargetSpec


class Source(Record, frozen=True, kw_only=True):
    """Where a worker gets its workload from."""

    spec: Annotated[TargetSpec | None, doc("a target to load; null where the workload was sent")] = None
    pickled: Annotated[str | None, doc("file with a workload from the parent's memory")] = None


class Open(Record, frozen=True, kw_only=True, tag=True):
    """Load the workload, apply levers, and make the first call."""

    source: Source
    levers: list[LeverChoice]
    folder: Annotated[str, doc("where levers may write")]
    cache: Annotated[str, doc("of compilers; its own for each configuration")]
    fresh_seed: Annotated[int | None, doc("run on fresh values of the inputs; null: on those given")] = None
    ready: Annotated[dict[str, list[str]], doc("files that levers wrote when this was opened before")] = {}


class Save(Record, frozen=True, kw_only=True, tag=True):
    """Write the cases and the results of this configuration, which are then the reference."""

    place: str
    seed: int


class Check(Record, frozen=True, kw_only=True, tag=True):
    """Hold the results against those that were saved."""

    place: str


class Score(Record, frozen=True, kw_only=True, tag=True):
    """Ask the user's own metric."""

    metric: Annotated[str, doc("file.py:function")]
    cwd: str
    also_blind: Annotated[bool, doc("also of a model that has learned nothing")] = False


class Peak(Record, frozen=True, kw_only=True, tag=True):
    """Read the peak of memory since the first call."""


class Time(Record, frozen=True, kw_only=True, tag=True):
    """Measure the workload as `bench` does."""

    budget_s: Seconds


class Survey(Record, frozen=True, kw_only=True, tag=True):
    """Say of each of some levers whether it may be tried, and with what."""

    levers: list[str]


class Opened(Record, frozen=True, kw_only=True):
    """A worker that is ready."""

    name: str
    device: str
    clock: str
    first_call_s: Annotated[Seconds, doc("of the first call, with all that it compiled")]
    apply_s: Annotated[list[Seconds], doc("how long each lever took to be applied")] = []
    artefact_bytes: Bytes = 0
    artefacts: Annotated[dict[str, list[str]], doc("files by the lever that wrote them")] = {}
    not_applied: Annotated[str | None, doc("which lever can be seen not to be in force, and why")] = None
    fixed_shapes: bool = False


class Checked(Record, frozen=True, kw_only=True):
    """Errors of all cases."""

    cases: list[CaseError]


class Scored(Record, frozen=True, kw_only=True):
    """The user's metric."""

    value: float
    blind: Annotated[
        float | None, doc("of a model whose outputs are zeros; the same where a metric says nothing")
    ] = None


class PeakRead(Record, frozen=True, kw_only=True):
    """The peak of memory."""

    peak_bytes: Bytes


class Surveyed(Record, frozen=True, kw_only=True):
    """Which levers may be tried."""

    refused: Annotated[dict[str, str], doc("why not, by lever")]
    choices: Annotated[dict[str, list[dict[str, Any]]], doc("parameters to be tried, by lever")]
    kind: Literal["inference", "training"]
    signature: Signature
    device: Annotated[str, doc("kind of machine: cpu, cpu with bfloat16, cuda")] = ""
    made_of: Annotated[Composition, doc("a step of an inference; empty for a training")] = Composition()
    notes: Annotated[list[str], doc("what else is to be told beside the figures")] = []


class Done(Record, frozen=True, kw_only=True):
    """Nothing but that it was done."""


Request: TypeAlias = Open | Save | Check | Score | Run | Peak | Time | Survey

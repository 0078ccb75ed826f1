"""The recipe: proved levers with their proof, as a TOML file, applied to a fresh model."""

from __future__ import annotations

import atexit
import contextlib
import copy
import shutil
import tempfile
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
import torch
from msgspec.structs import replace
from torch import nn

from pyrometer.advice import FixClass
from pyrometer.errors import InputError
from pyrometer.files import replacing, sha256_of
from pyrometer.hardware.environment import read_environment
from pyrometer.hardware.fingerprint import differing_fields
from pyrometer.hardware.record import Environment
from pyrometer.quantity import Bytes, Ratio, Seconds, counted, format_ratio
from pyrometer.record import Record, doc, from_dict, to_dict
from pyrometer.tuning.levers.applying import apply_levers, subject_of
from pyrometer.tuning.levers.choice import Configuration, LeverChoice, label_of
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.levers.stages import Stage
from pyrometer.tuning.levers.subject import Subject
from pyrometer.tuning.outcome import Figures, LeverResult
from pyrometer.tuning.recipe.pasting import python_lines
from pyrometer.tuning.recipe.signature import Signature, require_same_model, signature_of
from pyrometer.tuning.trials.gate import CaseError, Limits, coarsest, judge
from pyrometer.tuning.trials.results import case_error
from pyrometer.workload.inference import Inference, home_of
from pyrometer.workload.inputs import argument_source
from pyrometer.workload.parts import copied_module
from pyrometer.workload.state import inference_mode, preserved_rng
from pyrometer.workload.training import Training
from pyrometer.workload.variant import Variant

FORMAT = 1
MOST_LINES, LONGEST_LINE = 25, 240
"""Of what is printed."""

MORE_ERROR = 2.0
"""Times the error that was proved, which other inputs may lead to."""


class RecipeWarning(UserWarning):
    """A recipe is applied under other conditions than it was proved under."""


class Artefact(Record, frozen=True, kw_only=True):
    """A file that belongs to a recipe and lies beside it."""

    path: Annotated[str, doc("relative to the recipe")]
    sha256: str
    size_bytes: Bytes


class RecipeLever(Figures, frozen=True, kw_only=True):
    """A lever with its proof."""

    lever: str
    parameters: dict[str, Any] = {}
    fix_class: FixClass
    stage: Stage
    artefacts: list[Artefact] = []

    @property
    def choice(self) -> LeverChoice:
        """The lever with its parameters."""
        return LeverChoice(lever=self.lever, parameters=self.parameters)


class Dropped(Figures, frozen=True, kw_only=True):
    """A lever that was not kept, and why."""

    lever: str
    parameters: dict[str, Any] = {}
    outcome: LeverResult
    reason: str = ""


class Proof(Record, frozen=True, kw_only=True):
    """The whole recipe against the baseline, in fresh processes on fresh inputs."""

    outcome: Literal["faster", "slower", "same", "undecided"]
    ratio: Ratio
    ci_low: Ratio | None
    ci_high: Ratio | None
    confidence: float
    num_processes: int
    baseline_s: Seconds | None = None
    recipe_s: Seconds | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    cosine: float | None = None
    peak_bytes: Bytes | None = None


class Recipe(Record, frozen=True, kw_only=True):
    """Levers that were proved on one model, on one machine.

    `print` shows the short answer; `apply` gives a changed copy of a model; `save` writes the file; `python` the lines to paste.
    """

    format: int = FORMAT
    target: str
    kind: Literal["inference", "training"]
    created: Annotated[str, doc("time, ISO 8601")]
    commit: Annotated[str | None, doc("of the target's repository")] = None
    signature: Signature
    proof: Annotated[Proof | None, doc("null where no lever was kept")] = None
    levers: list[RecipeLever] = []
    dropped: list[Dropped] = []
    tolerance: float
    environment: Environment
    num_ranks: Annotated[
        int | None, doc("of the script that it is for; null for a workload of one process")
    ] = None
    place: Annotated[str | None, doc("the file that it was read from; not written")] = None

    def __str__(self) -> str:
        """What it brings, and the lines to paste."""
        if self.proof is None:
            tried = counted(len(self.dropped), "lever")
            text = f"{self.target}: no lever is proved to be faster; {tried} tried or left out"
        else:
            interval = (self.proof.ci_low or self.proof.ratio, self.proof.ci_high or self.proof.ratio)
            gain = format_ratio(self.proof.ratio, *interval)
            text = f"{self.target}: {gain} with {label_of(self.configuration)}\n\n{self.python()}"
        return "\n".join(line[:LONGEST_LINE] for line in text.splitlines()[:MOST_LINES])

    @property
    def configuration(self) -> Configuration:
        """The levers in the order in which they are applied."""
        return tuple(lever.choice for lever in self.levers)

    def apply(self, model: nn.Module, inputs: Any = None, *, folder: str | Path | None = None) -> nn.Module:
        """Apply the levers to a copy of a model for inference; the model itself is left alone.

        The copy runs in eval mode under `torch.inference_mode`, as it was measured. Settings of the process (threads) are not
        touched: see `settings`.

        Args:
            model: as it was when it was tuned; other weights are legal.
            inputs: example inputs in any form that `pm.Inference` takes; needed by levers that export or calibrate.
            folder: where levers write what they make; a temporary folder by default.

        Raises:
            IncomparableError: the model is another one.
            InputError: the recipe is for training, or a lever needs inputs and none are given.

        Warns:
            RecipeWarning: the machine, versions or settings are others than those of the proof.
        """
        if self.kind == "training":
            raise InputError("this recipe is for a training step; apply it with `recipe.workload(work)`")
        require_same_model(self.signature, signature_of(model))
        self._warn_elsewhere()
        ready = self.ready_files()
        if inputs is None:
            self._require_no_inputs(ready)
            # Zeros of the shapes and dtypes that the model was tuned with.
            inputs = tuple(_zeros(text, home_of(model)) for text in self.signature.inputs)
        work = Inference(copied_module("model", model), inputs)
        subject = subject_of(work, _folder(folder))
        subject.contexts.append(lambda: inference_mode(True))
        subject.ready = ready
        expected = None
        if subject.ready:
            example = subject.example()
            with preserved_rng(), inference_mode(True):
                expected = subject.model(*example.args, **example.kwargs)
        apply_levers(subject, self.configuration)
        finished = subject.finished()
        assert isinstance(finished, Inference)
        if expected is not None:
            self._require_same_results(subject, finished.model, expected)
        return finished.model

    def _require_no_inputs(self, ready: Mapping[str, Sequence[Path]]) -> None:
        for each in self.levers:
            if find_lever(each.lever).reads_inputs and each.lever not in ready:
                raise InputError(
                    f"recipe: {each.lever} calibrates on inputs like those of production, and none are given: recipe.apply(model, inputs)"
                )

    def ready_files(self) -> dict[str, list[Path]]:
        """What the levers wrote beside the recipe, by lever; a lever makes its own anew where the weights are others.

        Raises:
            InputError: a file is missing, or another one than was proved.
        """
        if self.place is None:
            return {}
        place = Path(self.place)
        for lever in self.levers:
            for artefact in lever.artefacts:
                _require_same_file(place, artefact)
        return {
            lever.lever: [place.parent / artefact.path for artefact in lever.artefacts]
            for lever in self.levers
            if lever.artefacts
        }

    def _require_same_results(self, subject: Subject, model: nn.Module, expected: Any) -> None:
        """What is loaded from files passes the gate again."""
        example = argument_source(subject.work.inputs, subject.device, Variant())[0]()  # type: ignore[union-attr]
        with preserved_rng():
            case = case_error("the example inputs", model(*example.args, **example.kwargs), expected)
        fix_class = coarsest([lever.fix_class for lever in self.levers])
        refused = judge([case], fix_class, Limits(tolerance=self.tolerance)).refused
        if refused is not None and not self._is_as_proved(case):
            raise InputError(
                f"{self.place}: what lies beside it computes other numbers ({refused}); tune again"
            )

    def _is_as_proved(self, case: CaseError) -> bool:
        """Whether an error is about what it was when the recipe was proved, as where a metric decided."""
        proved = self.proof.max_rel_error if self.proof is not None else None
        if case.mismatch is not None or case.max_rel is None or proved is None:
            return False
        return case.max_rel <= MORE_ERROR * proved

    def workload(self, work: Inference | Training) -> Inference | Training:
        """The same work with the levers applied, over copies of its objects.

        Raises:
            IncomparableError: its model is another one.
            InputError: the recipe is for the other kind of workload.
        """
        kind = "training" if isinstance(work, Training) else "inference"
        if kind != self.kind or not isinstance(work, (Inference, Training)):
            raise InputError(
                f"this recipe is for {self.kind}, and the workload is of kind {type(work).__name__}"
            )
        own = copy.copy(work)
        if isinstance(own, Inference):
            own.model = self.apply(own.model, own.inputs)
            return own
        require_same_model(self.signature, signature_of(own.parts.model))
        self._warn_elsewhere()
        own.parts = own.parts.copied(Variant())
        subject = subject_of(own, _folder(None))
        apply_levers(subject, self.configuration)
        return subject.finished()

    def _warn_elsewhere(self) -> None:
        fields = differing_fields(self.environment, read_environment())
        if fields:
            named = ", ".join(name for name, _, _ in fields[:3])
            warnings.warn(
                f"the recipe was proved under other conditions ({named}): "
                "`pyrometer tune --verify RECIPE` proves it here",
                RecipeWarning,
                stacklevel=3,
            )

    @contextlib.contextmanager
    def settings(self) -> Iterator[None]:
        """Hold what the recipe sets for the whole process, such as the number of threads; restored at the end."""
        with contextlib.ExitStack() as stack:
            for lever in self.levers:
                for setting in find_lever(lever.lever).process_settings(lever.parameters):
                    stack.enter_context(setting)
            yield

    def python(self) -> str:
        """The lines to paste, in place of the recipe; a comment stands for what only the recipe can do."""
        return "".join(f"{line}\n" for line in python_lines(self.configuration, self.kind))

    def write(self, path: str | Path) -> Path:
        """Write the recipe as TOML.

        Raises:
            InputError: the place cannot be written.
        """
        target = Path(path)
        plain = _without_none(to_dict(self) | {"place": None})
        try:
            with replacing(target) as beside:
                beside.write_bytes(tomli_w.dumps(plain).encode())
        except OSError as error:
            raise InputError(f"{target}: cannot be written: {error.strerror}") from error
        return target


def load_recipe(path: str | Path) -> Recipe:
    """Read a recipe, and check that the files beside it are those that it was proved with.

    Raises:
        InputError: it cannot be read, is no recipe, or a file beside it is missing or another.
    """
    place = Path(path)
    try:
        recipe = from_dict(Recipe, tomllib.loads(place.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{place}: not a recipe: {error}") from error
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    if recipe.format > FORMAT:
        raise InputError(
            f"{place}: format {recipe.format} is newer than {FORMAT}; update pyrometer to read it"
        )
    recipe = replace(recipe, place=str(place.resolve()))
    recipe.ready_files()
    return recipe


def artefact_of(path: Path, beside: Path) -> Artefact:
    """A file as it stands in a recipe."""
    return Artefact(
        path=str(path.relative_to(beside)), sha256=sha256_of(path), size_bytes=path.stat().st_size
    )


def _require_same_file(recipe: Path, artefact: Artefact) -> None:
    path = recipe.parent / artefact.path
    if not path.resolve().is_relative_to(recipe.parent.resolve()):
        raise InputError(f"{recipe}: {artefact.path} lies outside of the recipe's folder; it is not opened")
    if not path.is_file():
        raise InputError(f"{recipe}: {artefact.path} is missing; copy it along, or tune again")
    if sha256_of(path) != artefact.sha256:
        raise InputError(
            f"{recipe}: {artefact.path} is not the file that was proved (its hash differs); tune again"
        )


def _zeros(text: str, device: torch.device) -> torch.Tensor:
    name, _, shape = text.partition("[")
    sizes = [int(size) for size in shape.rstrip("]").split(",") if size.strip()]
    return torch.zeros(sizes, dtype=getattr(torch, name), device=device)


def _folder(folder: str | Path | None) -> Path:
    if folder is None:
        # Models may read what lies there for as long as this process lives.
        made = tempfile.mkdtemp(prefix="pyrometer-recipe-")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return Path(made)
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder)


def _without_none(value: Any) -> Any:
    """TOML has no null: what is not known is left out."""
    if isinstance(value, dict):
        return {name: _without_none(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_none(part) for part in value]
    return value

"""What a configuration computes: written down as the reference, or held against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from msgspec.structs import replace
from torch.utils import _pytree as pytree

from pyrometer.bench.comparison.interleaving import seed_all
from pyrometer.bench.matrix.numerics import numeric_error
from pyrometer.tuning.trials.cases import Case, cases_of
from pyrometer.tuning.trials.gate import EXACT, CaseError
from pyrometer.workload.failure import described, user_code
from pyrometer.workload.inference import Inference, InferenceSession
from pyrometer.workload.inputs import Arguments, argument_source
from pyrometer.workload.training import Training, TrainingSession

TRAINING_STEPS = 12
"""Of which losses are compared: enough for an optimizer's state to matter, and few enough for rounding not to have grown."""

RANDOM = "the outputs are random: they differ from seed to seed"

RANDOM_TRAINING = "the training is random: two runs from one seed differ"
STEADY_LOSSES = 1e-2

STEADY = EXACT / 10
"""As a share of the largest value: what seeds or the order of atomic additions change by less does not make outputs random."""

NUM_SEEDS = 3
FARTHEST = 5.0
"""Times as far as two other seeds lead at most: another order of random draws leads no farther, but for single numbers hardly ever."""


class Kept(NamedTuple):
    """A case with what the reference made of it, and how far other seeds lead from that where outputs are random."""

    case: Case
    output: Any
    failure: str | None
    spread: CaseError | None = None


def save_outputs(work: Inference, session: InferenceSession, seed: int, place: Path) -> None:
    """Write down the cases of an inference workload, and what it makes of them.

    Raises:
        UserProgramError: the model cannot even compute the inputs as given.
    """
    source, fixed = argument_source(work.inputs, session.device, work.config)
    seed_all(seed)
    cases = list(cases_of(source, fixed, seed, lambda arguments: takes(session, arguments)))
    with user_code("the model, on its inputs as given,"):
        first = _spread(session, cases[0], seed)
    kept: list[Kept] = []
    for case in cases:
        try:
            # Where few numbers are drawn, the seeds of one case may happen to agree.
            spreads = [] if first is None else [first, _spread(session, case, seed) or first]
            spread = max(spreads, key=lambda each: each.max_rel or 0.0, default=None)
            kept.append(Kept(case, _output(session, case.arguments, seed), None, spread))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's model, on inputs that it may refuse
            kept.append(Kept(case, None, f"the model itself raised {described(error)}"))
    torch.save(kept, place)


def _spread(session: InferenceSession, case: Case, seed: int) -> CaseError | None:
    """How far other seeds lead from the first; `None` where that is next to nothing."""
    first, *others = (_output(session, case.arguments, seed + offset) for offset in range(NUM_SEEDS))
    errors = [case_error(case.label, other, first) for other in others]
    worst = max(errors, key=lambda error: error.max_rel or 0.0)
    mismatch = next((error.mismatch for error in errors if error.mismatch), None)
    different = next((error.different for error in errors if error.different), None)
    if mismatch is None and different is None and (worst.max_rel or 0.0) <= STEADY:
        return None
    return replace(worst, mismatch=mismatch, different=different)


def takes(session: InferenceSession, arguments: Arguments) -> bool:
    """Whether the program as it is computes anything of some inputs; not asked of a device, which an illegal index would stop for good."""
    if session.device.type != "cpu":
        return True
    try:
        session.activate()
        session.step(arguments)
    except (Exception, SystemExit):  # noqa: BLE001 - the user's model, on inputs that it may refuse
        return False
    return True


def check_outputs(
    session: InferenceSession, seed: int, place: Path, *, fixed_shapes: bool
) -> list[CaseError]:
    """Hold what a changed model computes against what was written down."""
    # Our own file, in a folder that only this user may read; the user's inputs may hold objects of any class.
    kept: list[Kept] = torch.load(place, weights_only=False)
    return [
        CaseError(label=each.case.label, skipped="this lever fixes the shapes of the inputs")
        if fixed_shapes and each.case.resized and each.failure is None
        else _case_error(session, each, seed)
        for each in kept
    ]


def _case_error(session: InferenceSession, kept: Kept, seed: int) -> CaseError:
    case, reference, failure, spread = kept
    if failure is not None:
        return CaseError(label=case.label, skipped=failure)
    try:
        output = _output(session, case.arguments, seed)
    except (Exception, SystemExit) as failed:  # noqa: BLE001 - whatever the lever's library raises is a finding
        return CaseError(label=case.label, mismatch=f"raised {described(failed)}")
    error = case_error(case.label, output, reference)
    return error if spread is None else _of_random(error, spread)


def _of_random(error: CaseError, spread: CaseError) -> CaseError:
    """What an error says where outputs differ from seed to seed: no more than that it is legal, or far larger than that."""
    return beyond(error, spread) or replace(error, excuse=RANDOM)


def beyond(error: CaseError, spread: CaseError) -> CaseError | None:
    """An error that is not explained by how far the reference is from itself; `None` where it is."""
    if (error.mismatch and not spread.mismatch) or (error.different and not spread.different):
        return error
    off, apart = error.max_rel or 0.0, spread.max_rel or 0.0
    if off <= max(FARTHEST * apart, STEADY):
        return None
    told = f"off by {off:.1e} of the largest value, where it is off by {apart:.1e} from itself"
    return replace(error, mismatch=told)


def case_error(label: str, output: Any, reference: Any) -> CaseError:
    """How far an output is from the reference."""
    error = numeric_error(output, reference, 0.0)
    return CaseError(
        label=label,
        max_abs=error.max_abs,
        max_rel=error.max_rel,
        cosine=error.cosine,
        mismatch=error.mismatch,
        different=error.different,
    )


def _output(session: InferenceSession, arguments: Arguments, seed: int) -> Any:
    session.activate()
    seed_all(seed)
    output = session.step(arguments)
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().to("cpu", copy=True), output)


class Learning(NamedTuple):
    """What the first steps of a training compute.

    Attributes:
        losses: of each step.
        gradients: as the optimizer got them in the first step, in the order of its parameters; `None` where there was none.
    """

    losses: list[float]
    gradients: list[torch.Tensor | None]


def learn(work: Training, seed: int) -> Learning:
    """Train a workload's model for some steps from the same random state; it is as before afterwards."""
    with work.open() as session:
        assert isinstance(session, TrainingSession)
        session.activate()
        gradients: list[torch.Tensor | None] = []

        def keep(*_: Any) -> None:
            if not gradients:
                scale = session.parts.scaler.get_scale() if session.parts.scaler else 1.0
                gradients.extend(kept_gradients(session.parts.trained(), scale))

        seed_all(seed)
        with session.parts.optimizer.register_step_pre_hook(keep), user_code("the step"):
            losses = [_trained(session) for _ in range(TRAINING_STEPS)]
    return Learning(losses, gradients)


def _trained(session: TrainingSession) -> float:
    """The mean loss of a step's micro-batches, which may be more of them than in the reference."""
    losses: list[float] = []
    session.loss_seen = lambda loss: losses.append(float(loss.detach()))
    try:
        session.prepare()
        session.step()
    finally:
        session.loss_seen = None
    return sum(losses) / len(losses)


def kept_gradients(tensors: Iterable[torch.Tensor], scale: float = 1.0) -> Iterator[torch.Tensor | None]:
    """Copies of gradients, of sharded ones this rank's part; `None` where there is none."""
    for tensor in tensors:
        gradient: Any = tensor.grad
        if gradient is not None:
            gradient = gradient.to_local() if hasattr(gradient, "to_local") else gradient
            gradient = gradient.to_dense() if gradient.is_sparse else gradient
            gradient = gradient.detach().to("cpu", torch.float32, copy=True) / scale
        yield gradient


def save_learning(work: Training, seed: int, place: Path) -> None:
    """Write down the reference of a training workload."""
    torch.save((tuple(learn(work, seed)), tuple(learn(work, seed))), place)


def check_learning(work: Training, seed: int, place: Path) -> list[CaseError]:
    """Hold the losses and gradients of a changed training against the reference."""
    first, again = (Learning(*rows) for rows in torch.load(place, weights_only=True))
    spread = _losses_error(again, first)
    changed = learn(work, seed)
    if spread.mismatch is not None or (spread.max_rel or 0.0) > STEADY_LOSSES:
        error = _losses_error(changed, first)
        return [beyond(error, spread) or replace(error, skipped=RANDOM_TRAINING)]
    return learning_errors(changed, first)


def learning_errors(changed: Learning, reference: Learning) -> list[CaseError]:
    """How far the losses and gradients of a changed training are from the reference."""
    return [_losses_error(changed, reference), _gradient_error(changed, reference)]


def fall_error(changed: Learning, reference: Learning) -> CaseError:
    """How far the loss ends from the reference, as a share of how far that has fallen: what a lossy lever is held to."""
    label = f"fall of the loss in {TRAINING_STEPS} steps"
    quarter = max(len(reference.losses) // 4, 1)
    first, last = (sum(part) / quarter for part in (reference.losses[:quarter], reference.losses[-quarter:]))
    off = abs(sum(changed.losses[-quarter:]) / quarter - last)
    if not last < first:
        return CaseError(
            label=label, mismatch="the loss does not fall in the script as it is, so that nothing can be told"
        )
    return CaseError(label=label, max_abs=off, max_rel=off / (first - last))


def _losses_error(changed: Learning, reference: Learning) -> CaseError:
    error = numeric_error(torch.tensor(changed.losses), torch.tensor(reference.losses), 0.0)
    label = f"losses of {TRAINING_STEPS} steps"
    return CaseError(label=label, max_abs=error.max_abs, max_rel=error.max_rel, mismatch=error.mismatch)


def _gradient_error(changed: Learning, reference: Learning) -> CaseError:
    label = "gradients of the first step"
    pairs = list(zip(changed.gradients, reference.gradients, strict=False))
    if len(changed.gradients) != len(reference.gradients) or any(
        (a is None) != (b is None) for a, b in pairs
    ):
        return CaseError(label=label, mismatch="other parameters got a gradient")
    flat = [
        torch.cat([tensor.flatten() for tensor in side if tensor is not None])
        for side in zip(*pairs, strict=True)
    ]
    error = numeric_error(flat[0], flat[1], 0.0)
    # Rounding moves single gradients far; the direction of all is what training follows.
    return CaseError(label=label, cosine=error.cosine, mismatch=error.mismatch)

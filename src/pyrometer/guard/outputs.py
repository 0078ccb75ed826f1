"""Whether the head computes what the base does: same weights, same inputs, same seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.bench.comparison.interleaving import seed_all
from pyrometer.bench.matrix.cell import OutputError
from pyrometer.bench.matrix.numerics import numeric_error, tolerance_for
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload

TRAINING_STEPS = 3


def keep_outputs(work: Workload, place: Path) -> str | None:
    """Leave weights, inputs and outputs of the base where the head finds them; why not, where they are random.

    Raises:
        UserProgramError: a step raised.
    """
    model = _model(work)
    state = {} if model is None else {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    inputs, outputs = _run(work, None, seed=0)
    _, again = _run(work, inputs, seed=1)
    error = numeric_error(again, outputs, _tolerance(work))
    if error.num_values == 0:
        return ""
    if not error.within_tolerance:
        return "its outputs are random"
    torch.save({"state": state, "inputs": inputs, "outputs": outputs}, place)
    return None


def output_difference(work: Workload, place: Path) -> OutputError | str:
    """How far the head's outputs are from the base's; why they cannot be compared, where they cannot.

    Raises:
        UserProgramError: a step raised.
    """
    if not place.exists():
        return "the base left no outputs"
    kept = torch.load(place, map_location="cpu", weights_only=True)
    model = _model(work)
    if model is not None:
        try:
            model.load_state_dict(kept["state"])
        except (RuntimeError, ValueError):
            return "the head's model has other weights"
    try:
        _, outputs = _run(work, kept["inputs"], seed=0)
    except (RuntimeError, TypeError, ValueError):
        return "the head does not take the base's inputs"
    return numeric_error(outputs, kept["outputs"], _tolerance(work))


def _model(work: Workload) -> nn.Module | None:
    if isinstance(work, Training):
        return work.parts.model
    return work.model if isinstance(work, Inference) else None


def _tolerance(work: Workload) -> float:
    model = _model(work)
    if model is None:
        return tolerance_for("float32", torch.device("cpu"))
    tensors = [one for one in model.parameters() if one.is_floating_point()]
    dtypes = {str(one.dtype).removeprefix("torch.") for one in tensors} | {"float32"}
    dtypes |= {name for name in (work.config.dtype, work.config.autocast) if name}
    device = tensors[0].device if tensors else torch.device("cpu")
    return max(tolerance_for(dtype, device) for dtype in dtypes)


def _run(work: Workload, inputs: Any, seed: int) -> tuple[Any, list[Any]]:
    """Positional and keyword inputs of the first step, where they can be handed on, and what the steps return."""
    outputs = []
    with work.open() as session:
        session.activate()
        for _ in range(TRAINING_STEPS if isinstance(work, Training) else 1):
            seed_all(seed)
            prepared = session.prepare()
            if inputs is not None:
                args, kwargs = pytree.tree_map_only(torch.Tensor, lambda t: t.to(session.device), inputs)
                prepared = prepared._replace(args=tuple(args), kwargs=kwargs)
            outputs.append(_plain(session.step(prepared)))
    if not isinstance(work, Inference):
        return None, outputs
    portable = [list(prepared.args), dict(prepared.kwargs)]
    return (_on_cpu(portable) if _is_plain(portable) else None), outputs


def _is_plain(value: Any) -> bool:
    """Whether a value is nothing but lists, tuples and dictionaries of plain things, which are safe to load again."""
    if isinstance(value, (list, tuple)):
        return type(value) in {list, tuple} and all(map(_is_plain, value))
    if isinstance(value, dict):
        return type(value) is dict and all(map(_is_plain, value.values()))
    return isinstance(value, (torch.Tensor, int, float, str, bool, type(None)))


def _on_cpu(value: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().to("cpu", copy=True), value)


def _plain(output: Any) -> list[Any]:
    """The tensors and numbers of an output, in their order."""
    leaves = pytree.tree_leaves(output)
    return [_on_cpu(leaf) for leaf in leaves if isinstance(leaf, (torch.Tensor, int, float))]

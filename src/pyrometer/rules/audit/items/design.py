"""Items about the model itself."""

from __future__ import annotations

from pyrometer.quantity import format_percent
from pyrometer.rules.audit.applicable import needs_training
from pyrometer.rules.audit.item import Failure, Item, proof_of
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Value

SATURATING = frozenset({"Sigmoid", "Tanh", "Hardsigmoid", "Hardtanh", "Softsign"})
MANY_SATURATING = 4
"""Saturating activations in a row of layers, from which on gradients shrink by more than they should."""

NORMS = frozenset({"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "RMSNorm"})
CONCENTRATED = 0.9
"""Of all parameters in one layer, above which width and depth are out of balance."""

FEWEST_LAYERS = 4


def _no_model(case: Case) -> str | None:
    program = case.program
    if program is not None and not program.modules:
        return "the workload has no nn.Module"
    return None


def _activations(case: Case) -> Failure | None:
    program = case.program
    if program is None:
        return None
    count = sum(number for name, number in program.activations.items() if name in SATURATING)
    if count < MANY_SATURATING or count <= sum(program.activations.values()) / 2:
        return None
    return Failure(
        reason=f"{count} of {sum(program.activations.values())} activations saturate",
        evidence={"saturating": count, "activations": sum(program.activations.values())},
        advice="use ReLU, GELU or SiLU between layers, and keep sigmoid and tanh for gates and outputs",
    )


def _activation_proof(case: Case) -> dict[str, Value] | None:
    if case.program is None or not case.program.activations:
        return None
    return {"activations": [f"{count} {name}" for name, count in sorted(case.program.activations.items())]}


def _redundant(case: Case) -> Failure | None:
    """Layers that pass their output straight to another one with which they could be one: linear to linear, norm to norm."""
    modules = case.program.modules if case.program is not None else []
    by_path = {module.path: module for module in modules}
    for second in modules:
        first = by_path.get(second.follows) if second.follows is not None else None
        if first is None:
            continue
        both = (first.type_name, second.type_name)
        if set(both) <= NORMS or both == ("Linear", "Linear"):
            return Failure(
                reason=f"{second.path} ({second.type_name}) follows {first.path} ({first.type_name}) with nothing between",
                evidence={"first": first.path, "second": second.path},
                advice="two linear layers without an activation are one: merge them; of two norms keep one",
            )
    return None


def _module_proof(case: Case) -> dict[str, Value] | None:
    if case.program is None or not case.program.observed or not case.program.modules:
        return None  # without a step nobody knows what follows what
    return {"layers_looked_at": len(case.program.modules)}


def _balance(case: Case) -> Failure | None:
    program = case.program
    weighted = [module for module in program.modules if module.num_parameters] if program is not None else []
    total = sum(fact.num_parameters for fact in weighted)
    if len(weighted) < FEWEST_LAYERS:
        return None
    largest = max(weighted, key=lambda fact: fact.num_parameters)
    share = largest.num_parameters / total
    if share <= CONCENTRATED or largest.type_name.startswith("Embedding"):
        return None
    return Failure(
        reason=f"{largest.path} holds {format_percent(share, 2)} of all parameters",
        evidence={"layer": largest.path, "share": share},
        advice="pool before a large linear layer, or spread the width over the depth",
    )


def _balance_proof(case: Case) -> dict[str, Value] | None:
    program = case.program
    weighted = (
        [module.num_parameters for module in program.modules if module.num_parameters] if program else []
    )
    if len(weighted) < FEWEST_LAYERS:
        return None
    return {"layers_with_weights": len(weighted), "largest_share": max(weighted) / sum(weighted)}


def _initialisation(case: Case) -> Failure | None:
    looks = case.program.initialised if case.program is not None else {}
    wrong = [path for path, look in looks.items() if look in {"zero", "constant"}]
    if not wrong:
        return None
    return Failure(
        reason=f"weights of {wrong[0]} are all {looks[wrong[0]]}",
        evidence={"layers": wrong},
        advice="initialise with nn.init.kaiming_normal_ before ReLU-like activations, xavier_uniform_ before others",
    )


def _initialisation_proof(case: Case) -> dict[str, Value] | None:
    looks = case.program.initialised if case.program is not None else {}
    return {"layers_with_varied_weights": len(looks)} if looks else None


_NUMBERS = proof_of("numerics", steps_watched=lambda numerics: numerics.num_steps)


DESIGN = (
    Item(
        code="A101",
        title="Activations do not saturate through the depth",
        fault=_activations,
        proof=_activation_proof,
        applies=_no_model,
        needed="the model's activation modules",
    ),
    Item(
        code="A102",
        title="No layer is redundant",
        fault=_redundant,
        proof=_module_proof,
        applies=_no_model,
        needed="one step of the model",
    ),
    Item(
        code="A103",
        title="Depth and width are balanced",
        fault=_balance,
        proof=_balance_proof,
        applies=_no_model,
        needed="a model with several layers",
    ),
    Item(
        code="A104",
        title="Weights are initialised",
        fault=_initialisation,
        proof=_initialisation_proof,
        applies=_no_model,
        needed="the weights of linear and convolution layers",
    ),
    Item(
        code="A105",
        title="Outputs and gradients stay finite",
        rules=("PYR701", "PYR702"),
        family="numerics",
        proof=_NUMBERS,
        needed="a few steps under observation of their numbers",
    ),
    Item(
        code="A106",
        title="Gradients neither vanish nor explode",
        rules=("PYR703", "PYR704", "PYR705"),
        proof=_NUMBERS,
        applies=needs_training,
        needed="a few training steps under observation of their numbers",
    ),
    Item(
        code="A107",
        title="Norms, softmax and losses are computed in full precision",
        rules=("PYR706", "PYR707", "PYR710"),
        proof=_NUMBERS,
        needed="a few steps under observation of their numbers",
    ),
)

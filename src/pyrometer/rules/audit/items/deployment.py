"""Items about deployment and production, as far as the source of a service shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pyrometer.rules.audit.applicable import needs_inference, needs_service
from pyrometer.rules.audit.item import Failure, Fault, Item, Proof
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Value

METRICS = ("prometheus_client", "opentelemetry", "statsd", "datadog", "pyrometer.monitor")
LOGS = ("structlog", "pythonjsonlogger", "loguru", "json_logging", "logging_json")
ALERTS = ("sentry_sdk", "alertmanager", "pagerduty", "pdpyras", "rollbar")
VERSIONS = ("mlflow", "bentoml", "huggingface_hub", "dvc", "wandb", "pyrometer.rollout")


def _imports(case: Case, names: Iterable[str]) -> list[str]:
    """Those of the packages that some file imports."""
    found: set[str] = set()
    for module in case.modules:
        for node in module.nodes(ast.Import, ast.ImportFrom):
            if isinstance(node, ast.ImportFrom):
                imported = [node.module or ""]
            else:
                imported = [alias.name for alias in node.names]
            found |= {name for name in names for one in imported if one == name or one.startswith(f"{name}.")}
    return sorted(found)


def _imports_some(names: tuple[str, ...]) -> Proof:
    def prove(case: Case) -> dict[str, Value] | None:
        imports = _imports(case, names)
        return {"imports": imports} if imports else None

    return prove


def _imports_none(names: tuple[str, ...], what: str, advice: str) -> Fault:
    def look(case: Case) -> Failure | None:
        if not case.modules or _imports(case, names):
            return None
        looked_for: list[str] = list(names)
        return Failure(
            reason=f"the service {what}: it imports none of {', '.join(names)}",
            evidence={"files_read": len(case.modules), "looked_for": looked_for},
            advice=advice,
        )

    return look


def _degrades(case: Case) -> dict[str, Value] | None:
    """A handler of a failing or late model that answers all the same."""
    places: list[str] = [
        f"{module.path}:{node.lineno}"
        for module in case.modules
        for node in module.nodes(ast.ExceptHandler)
        if any(isinstance(inner, ast.Return) for inner in ast.walk(node))
        and "time" in f"{ast.unparse(node.type) if node.type is not None else ''}".lower()
    ]
    return {"fallbacks": places} if places else None


def _modes(case: Case) -> dict[str, Value] | None:
    """Layers alone prove little: whoever measures an inference puts them in evaluation mode first."""
    program = case.program
    if program is None or program.active_dropouts is None:
        return None
    in_training = sum(module.training for module in program.modules)
    return {"active_dropouts": program.active_dropouts, "modules_in_training_mode": in_training}


def _training_mode(case: Case) -> Failure | None:
    seen = _modes(case)
    if seen is None or not any(seen.values()):
        return None
    return Failure(
        reason="dropout or layers are in training mode while the model infers",
        evidence=seen,
        advice="call model.eval() before inference, and pass training=self.training to functional dropout",
    )


def _warm(case: Case) -> dict[str, Value] | None:
    measured = case.measurement
    if measured is None or not measured.median_s:
        return None
    return {"first_call_over_median": measured.first_call_s / measured.median_s}


DEPLOYMENT = (
    Item(
        code="A801",
        title="Inference runs in evaluation mode",
        rules=("PYR509",),
        fault=_training_mode,
        proof=_modes,
        applies=needs_inference,
        needed="one step of the model",
    ),
    Item(
        code="A802",
        title="The model is warm before traffic arrives",
        rules=("PYR406",),
        proof=_warm,
        applies=needs_service,
        needed="a measurement",
    ),
    Item(
        code="A803",
        title="The service exports metrics",
        fault=_imports_none(
            METRICS, "exports no metrics", "count requests, latency and errors with prometheus_client"
        ),
        proof=_imports_some(METRICS),
        applies=needs_service,
        needed="the program's source",
    ),
    Item(
        code="A804",
        title="Someone is alerted",
        proof=_imports_some(ALERTS),
        applies=needs_service,
        needed="alert rules, which live outside of the source; alert on latency, errors and memory growth",
    ),
    Item(
        code="A805",
        title="A late or failing model is answered for",
        proof=_degrades,
        applies=needs_service,
        needed="a handler of time-outs that returns an answer",
    ),
    Item(
        code="A806",
        title="Logs are structured, and not written for every request in the hot path",
        rules=("PYR006",),
        fault=_imports_none(
            LOGS, "writes no structured logs", "log one JSON object per request with structlog"
        ),
        proof=_imports_some(LOGS),
        applies=needs_service,
        needed="the program's source",
    ),
    Item(
        code="A807",
        title="An earlier version can be brought back",
        proof=_imports_some(VERSIONS),
        applies=needs_service,
        needed="a registry of model versions; keep the last two where the service can load them",
    ),
)

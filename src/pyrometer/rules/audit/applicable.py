"""When an item does not concern a program."""

from __future__ import annotations

from collections.abc import Callable

from pyrometer.rules.case import Case

TIMERS = ("perf_counter", "time.time", "timeit", "monotonic", "elapsed_time")
PROFILERS = ("torch.profiler", "autograd.profiler", "import profiler")
COMPILERS = ("torch.compile", "torch._dynamo", "TORCH_LOGS", "set_detect_anomaly")
CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "ConvTranspose3d")


def on_device(case: Case) -> bool | None:
    """Whether the program computes on an accelerator; null when that is not known."""
    if case.trace is not None:
        return case.trace.device_busy_ns > 0
    return case.program.device not in {"cpu", "none"} if case.program is not None else None


def needs_device(case: Case) -> str | None:
    """For items about accelerators."""
    return "the program computes on the CPU" if on_device(case) is False else None


def needs_training(case: Case) -> str | None:
    """For items about training."""
    program = case.program
    if program is None or program.kind == "script":
        return needs_words((".backward(", "zero_grad", "Trainer("), "the program does not train")(case)
    return "the workload does not train" if program.kind == "inference" else None


def needs_inference(case: Case) -> str | None:
    """For items about inference."""
    program = case.program
    return "the workload trains" if program is not None and program.kind == "training" else None


def needs_loader(case: Case) -> str | None:
    """For items about a loader of data."""
    if case.loading is not None and case.loading.verdict == "no-loader":
        return "the workload has no loader"
    return needs_training(case)


def needs_compiled(case: Case) -> str | None:
    """For items about torch.compile."""
    if case.compiled is not None:
        return None
    compiles = case.program is not None and case.program.compiled
    return None if compiles else "the program compiles nothing"


def needs_convolutions(case: Case) -> str | None:
    """For items about convolutions."""
    program = case.program
    if program is None:
        return needs_words(CONVOLUTIONS, "the program has no convolutions")(case)
    known = any(module.type_name.startswith(CONVOLUTIONS) for module in program.modules)
    return None if known else "the model has no convolutions"


def needs_ranks(case: Case) -> str | None:
    """For items about several ranks."""
    if case.job is not None or len(case.ranks) > 1:
        return None
    wrapped = case.program is not None and case.program.wrappers
    return None if wrapped else "the program runs in one process"


def needs_service(case: Case) -> str | None:
    """For items about production: the source imports a server, or runs a loop without end."""
    if not case.modules:
        return None
    return None if any(serves(module.text) for module in case.modules) else "the program does not serve"


def needs_words(words: tuple[str, ...], why_not: str) -> Callable[[Case], str | None]:
    """For items about what a source does at all: none of its files holds any of the words."""

    def look(case: Case) -> str | None:
        if not case.modules or any(word in module.text for module in case.modules for word in words):
            return None
        return why_not

    return look


SERVERS = (
    "fastapi",
    "flask",
    "aiohttp",
    "starlette",
    "grpc",
    "bentoml",
    "litserve",
    "tornado",
    "rclpy",
    "ray.serve",
)


def serves(text: str) -> bool:
    """Whether a source imports a framework that serves requests or messages.

    >>> serves("from fastapi import FastAPI"), serves("import torch")
    (True, False)
    """
    starts = tuple(f"{word} {name}" for word in ("import", "from") for name in SERVERS)
    return any(line.strip().startswith(starts) for line in text.splitlines())

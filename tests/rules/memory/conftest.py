"""What tests of rules about memory share: profiles with a known truth, programs from the examples, fixes as they apply."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import msgspec
import pytest
import torch

from pyrometer.advice import Advice, Gain
from pyrometer.memory.advice.case import Case as AdviceCase
from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.profile import LeakReport, LeakSite, MemoryProfile
from pyrometer.memory.profiling import profile_memory
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.rules.match import Match
from pyrometer.source.edit import apply_edits
from recorded import case_of_program

MIB = 2**20


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Small operators on one thread: many threads only wait for each other where cores are shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def fixed() -> Callable[[str, list[Match]], str]:
    """A text with the fixes of all matches made."""

    def apply(text: str, matches: list[Match]) -> str:
        edits = [edit for match in matches if match.fix is not None for edit in match.fix.edits]
        return apply_edits(textwrap.dedent(text), edits)

    return apply


@pytest.fixture
def profile() -> Callable[..., MemoryProfile]:
    """`profile({"activations": 80}, advice={"in-place": 30}, device="cpu")`: a profile in MiB, with a place in each advice."""

    def make(
        ledger: dict[str, float], *, advice: dict[str, float] | None = None, **more: Any
    ) -> MemoryProfile:
        held = {name: int(ledger.get(name, 0) * MIB) for name in CATEGORIES}
        pieces = [
            Advice(
                slug=slug,
                title=f"do {slug}",
                why=f"the peak falls in forward; /home/user/train.py:7 `x = y`: {saves} MiB",
                where=Place(file="/home/user/train.py", line=7),
                rewrite=f"{slug}()",
                fix_class="tolerance",
                effect="the same values",
                gain=Gain(saves_bytes=int(saves * MIB), method="predicted: replayed"),
            )
            for slug, saves in (advice or {}).items()
        ]
        fields = {"name": "test", "device": "cpu", "peak_phase": "forward", **more}
        return MemoryProfile(peak_bytes=sum(held.values()), ledger_bytes=held, advice=pieces, **fields)

    return make


@pytest.fixture
def leaking() -> Callable[..., MemoryProfile]:
    """A profile with a leak report of these sites."""

    def make(*sites: LeakSite, **more: Any) -> MemoryProfile:
        fields = {"verdict": "leak", "sentence": "leak", "unbounded": True, "eta_steps": 1000.0, **more}
        rate = sum(site.bytes_per_step for site in sites)
        report = LeakReport(sites=list(sites), bytes_per_step=rate, **fields)
        ledger = dict.fromkeys(CATEGORIES, 0)
        return MemoryProfile(name="test", device="cpu", peak_bytes=0, ledger_bytes=ledger, leak=report)

    return make


@pytest.fixture(scope="session")
def example(load: Callable[[str], ModuleType]) -> Callable[[str], ModuleType]:
    """`example("bottlenecks/memory_churn.py")`, loaded."""
    return lambda name: load(f"examples/{name}")


@pytest.fixture(scope="session")
def recorded() -> Callable[[Any], MemoryProfile]:
    """A workload's memory as it was recorded, without predictions."""
    return lambda work: profile_memory(work, predict=False)


@pytest.fixture(scope="session")
def rehearsed() -> Callable[..., MemoryProfile]:
    """`rehearsed(work, checkpointing)`: a recorded profile with what these rules of advice rehearsed, in any time."""

    def look(work: Any, *rules: Callable[[AdviceCase], Iterable[Advice]]) -> MemoryProfile:
        profile = profile_memory(work, predict=False)
        case = AdviceCase(profile, work, time_limit_s=600.0)
        advice = sorted((one for rule in rules for one in rule(case)), key=lambda one: -(one.saves_bytes))
        return msgspec.structs.replace(profile, advice=advice)

    return look


@pytest.fixture(scope="session")
def robot() -> Case:
    """The controller that never forgets."""
    return case_of_program("robot_controller", "workload", "memory")

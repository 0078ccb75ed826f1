"""What tests of rules share: matches in a text, evidence about a real workload, traces with a known truth."""

from __future__ import annotations

import importlib.util
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pyrometer.record import from_json, to_json
from pyrometer.rules.case import Case
from pyrometer.rules.explain import findings_of
from pyrometer.rules.finding import Finding
from pyrometer.rules.match import Match
from pyrometer.rules.registry import find_rule
from pyrometer.source.module import Module

ROOT = Path(__file__).parents[2]


@pytest.fixture
def matches() -> Callable[..., list[Match]]:
    """`matches("PYR101", text, path="train.py")`: what one rule finds in a text, by line."""

    def look(which: str, text: str, path: str = "train.py") -> list[Match]:
        module = Module.parse(path, textwrap.dedent(text))
        return sorted(find_rule(which).matches(module), key=lambda match: (match.line, match.column))

    return look


@pytest.fixture
def lines(matches: Callable[..., list[Match]]) -> Callable[..., list[int]]:
    """`lines("PYR101", text)`: the lines that one rule finds."""
    return lambda which, text, path="train.py": [match.line for match in matches(which, text, path)]


@pytest.fixture
def marked() -> Callable[[str], list[int]]:
    """The lines of a dedented text that end in `# <-`: where a rule must fire."""

    def look(text: str) -> list[int]:
        found = textwrap.dedent(text).splitlines()
        return [number for number, line in enumerate(found, 1) if line.rstrip().endswith("# <-")]

    return look


@pytest.fixture
def in_program() -> Callable[[str], str]:
    """The file around the lines of a test: themselves, unless a family has a program to put them into."""
    return lambda text: text


@pytest.fixture
def fires(
    lines: Callable[..., list[int]], marked: Callable[[str], list[int]], in_program: Callable[[str], str]
) -> Callable[[str, str], None]:
    """`fires("PYR201", text)`: assert that a rule finds exactly the lines that end in `# <-`."""

    def check(which: str, text: str) -> None:
        whole = in_program(text)
        assert marked(whole), "the test marks no line"
        assert lines(which, whole) == marked(whole)

    return check


@pytest.fixture
def silent(lines: Callable[..., list[int]], in_program: Callable[[str], str]) -> Callable[[str, str], None]:
    """`silent("PYR201", text)`: assert that a rule finds nothing."""

    def check(which: str, text: str) -> None:
        assert lines(which, in_program(text)) == []

    return check


@pytest.fixture
def documented() -> Callable[[str, str], str]:
    """`documented("PYR001", "Example")`: the code in a rule's documentation."""

    def look(which: str, heading: str) -> str:
        match = re.search(r"```python\n(.*?)```", find_rule(which).section(heading), re.DOTALL)
        assert match is not None
        return match[1]

    return look


@pytest.fixture
def speaks_as_documented(
    documented: Callable[[str, str], str], matches: Callable[..., list[Match]]
) -> Callable[[str], None]:
    """Assert that a rule finds its own example, and nothing in what it asks for instead."""

    def check(which: str) -> None:
        assert matches(which, documented(which, "Example"))
        assert not matches(which, documented(which, "Use instead"))

    return check


@pytest.fixture
def run(documented: Callable[[str, str], str]) -> Callable[..., dict[str, Any]]:
    """`run("PYR001", "Use instead", model=model)`: what the documented code leaves in its names."""

    def execute(which: str, heading: str, **given: Any) -> dict[str, Any]:
        names = {"__name__": heading, **given}
        exec(compile(documented(which, heading), f"{which} {heading}", "exec"), names)
        return names

    return execute


@pytest.fixture
def findings() -> Callable[..., list[Finding]]:
    """`findings("PYR301", evidence)`: what one rule makes of evidence, and that a stored document can be read again."""

    def look(which: str, case: Case) -> list[Finding]:
        found = findings_of(case, [find_rule(which)])
        for finding in found:
            from_json(Finding, to_json(finding))
        return found

    return look


@pytest.fixture
def only(findings: Callable[..., list[Finding]]) -> Callable[[str, Case], Finding]:
    """The single finding of one rule about evidence."""

    def look(which: str, case: Case) -> Finding:
        found = findings(which, case)
        assert len(found) == 1, [finding.message for finding in found]
        return found[0]

    return look


@pytest.fixture(scope="session")
def observe() -> Callable[..., Case]:
    """`observe(work, "trace", "memory", "program", sources=[path])`: evidence of just these kinds about a workload."""

    def look(work: Any, *kinds: str, sources: list[Path] | None = None, steps: int = 2) -> Case:
        modules = tuple(Module.parse(str(path), path.read_text(encoding="utf-8")) for path in sources or [])
        found = {kind: _OBSERVERS[kind](work, steps) for kind in kinds}
        return Case(target="test", modules=modules, **found)

    return look


def _measurement(work: Any, _steps: int) -> Any:
    from pyrometer.bench.measure import measure

    return measure(work, budget_s=0.5)


def _trace(work: Any, steps: int) -> Any:
    from pyrometer.trace.capture.record import CaptureOptions
    from pyrometer.trace.capture.workload import record_trace
    from pyrometer.trace.reporting.rank_report import report_rank

    options = CaptureOptions(record_shapes=True, with_stack=True, profile_memory=True, with_modules=True)
    return report_rank(record_trace(work, steps=steps, options=options).ranks[0])


def _compiled(work: Any, _steps: int) -> Any:
    from pyrometer.compiler.inspection.inspect import inspect_compile

    return inspect_compile(work, budget_s=0.3)


def _memory(work: Any, _steps: int) -> Any:
    from pyrometer.memory.profiling import profile_memory

    return profile_memory(work, scaling=False, weigh_s=2.0)


def _loading(work: Any, _steps: int) -> Any:
    from pyrometer.loading.pipeline import observe_loading

    return observe_loading(work, budget_s=1.0)


def _program(work: Any, _steps: int) -> Any:
    from pyrometer.workload.program.describe import describe

    return describe(work)


def _numerics(work: Any, steps: int) -> Any:
    from pyrometer.numerics.watch import watch_numerics

    return watch_numerics(work, steps=steps)


def _environment(_work: Any, _steps: int) -> Any:
    from pyrometer.hardware.environment import read_environment

    return read_environment()


_OBSERVERS: dict[str, Callable[[Any, int], Any]] = {
    "measurement": _measurement,
    "trace": _trace,
    "compiled": _compiled,
    "memory": _memory,
    "loading": _loading,
    "program": _program,
    "numerics": _numerics,
    "environment": _environment,
}


@pytest.fixture(scope="session")
def load() -> Iterator[Callable[[str], ModuleType]]:
    """`load("examples/job_traces.py")`: a file of this repository as a module of its own, once per session."""
    loaded: dict[str, ModuleType] = {}

    def once(path: str) -> ModuleType:
        if path not in loaded:
            spec = importlib.util.spec_from_file_location(f"loaded_{len(loaded)}", ROOT / path)
            assert spec is not None
            assert spec.loader is not None
            loaded[path] = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = loaded[path]
            spec.loader.exec_module(loaded[path])
        return loaded[path]

    yield once
    for module in loaded.values():
        sys.modules.pop(module.__name__, None)


@pytest.fixture(scope="session")
def trace_tests(load: Callable[[str], ModuleType]) -> ModuleType:
    """The builder of small traces that the tests of traces use: `trace_tests.TraceBuilder(folder)`."""
    return load("tests/trace/conftest.py")


@pytest.fixture
def builder(trace_tests: ModuleType, tmp_path: Path) -> Any:
    """An empty trace to fill: `.op`, `.launch`, `.call`, `.python`, `.annotate`, then `.read()`."""
    return trace_tests.TraceBuilder(tmp_path)


@pytest.fixture(scope="session", autouse=True)
def own_trace_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Large files that tests read are cached in a folder of this session, not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYROMETER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield

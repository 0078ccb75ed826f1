"""The hooks of the plugin, which pytest finds by the entry point `pyrometer`.

Nothing heavy is imported here: a session that does not use the fixture pays for this file alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from pyrometer.guard.pytest.fixture import PyrometerFixture
    from pyrometer.guard.pytest.turns import Turns

FIXTURE = "pyrometer"
UNDECIDED = ("fail", "warn", "pass")

_USED = pytest.StashKey["PyrometerFixture"]()
_TURNS = pytest.StashKey["Turns"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, each with a twin in the configuration file where it makes sense."""
    group = parser.getgroup("pyrometer", "measuring and contracts (Pyrometer)")
    group.addoption(
        "--pyrometer-undecided",
        choices=UNDECIDED,
        help="what a contract does that the measurement does not decide: fail (default), warn or pass",
    )
    group.addoption(
        "--pyrometer-json",
        metavar="FILE",
        type=Path,
        help="write all measurements and contracts of the session to FILE, from all workers",
    )
    parser.addini("pyrometer_undecided", "as --pyrometer-undecided", default="fail")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what cannot be used before any test runs."""
    config.addinivalue_line(
        "markers", f"{FIXTURE}: uses the fixture of Pyrometer; set by itself, for -m 'not {FIXTURE}'"
    )
    chosen = undecided_of(config)
    if chosen not in UNDECIDED:
        raise pytest.UsageError(f"pyrometer_undecided: got {chosen!r}; legal are {', '.join(UNDECIDED)}")
    if _is_worker(config):
        return
    file: Path | None = config.getoption("pyrometer_json")
    if file is not None and (file.is_dir() or not file.parent.is_dir()):
        raise pytest.UsageError(
            f"--pyrometer-json {file}: no file can be written there; name one in a folder that exists"
        )
    config.pluginmanager.register(Gathered(file), "pyrometer-gathered")


def undecided_of(config: pytest.Config) -> str:
    """What undecided contracts do: the option, else the configuration file."""
    return cast("str", config.getoption("pyrometer_undecided") or config.getini("pyrometer_undecided"))


@pytest.fixture
def pyrometer(request: pytest.FixtureRequest) -> Iterator[PyrometerFixture]:
    """Measures, compares and keeps contracts about the speed, the memory and the numbers of a program."""
    from pyrometer.guard.pytest.fixture import PyrometerFixture, Undecided

    used = PyrometerFixture(cast("Undecided", undecided_of(request.config)))
    request.node.stash[_USED] = used
    if _uses(request.node) or not _is_worker(request.config):
        yield used
        return
    with _turns(request.config).alone():  # asked for by name while the test runs
        yield used


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the fixture, so that `-m` selects it."""
    for item in items:
        if _uses(item):
            item.add_marker(FIXTURE)


def pytest_collection_finish(session: pytest.Session) -> None:
    """In a worker of pytest-xdist, tests take turns as soon as one of them measures."""
    if _is_worker(session.config) and any(map(_uses, session.items)):
        _turns(session.config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that measures runs alone; it waits here, before anything counts its time."""
    turns = item.config.stash.get(_TURNS, None)
    if turns is None:
        return (yield)
    with turns.alone() if _uses(item) else turns.beside_others():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Give a report what its test measured, as text that travels from a worker."""
    report: Any = yield
    used = item.stash.get(_USED, None)
    if used is not None:
        from pyrometer.guard.pytest.suite import attach

        attach(report, used, item.config)
    return report


class Gathered:
    """What the reports of all tests bring, in the process that tells of them.

    Args:
        file: to write the document to, where it is wanted.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._sent: list[str] = []
        self._session: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test has ended, here or in a worker."""
        if (sent := getattr(report, FIXTURE, None)) is not None:
            self._sent.append(sent)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended."""
        self._session = node.workerinput["testrunuid"]

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the document, also after Ctrl-C."""
        if self._session is not None:
            from pyrometer.guard.pytest.turns import remove_turns

            remove_turns(self._session)
        if self._file is not None:
            from pyrometer.guard.pytest.suite import write_suite

            write_suite(self._file, self._sent, int(exitstatus))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """One line, where anything was measured."""
        if not self._sent and self._file is None:
            return
        from pyrometer.guard.pytest.suite import summary

        terminalreporter.section("pyrometer")
        terminalreporter.line(summary(self._sent, self._file))


def _uses(item: pytest.Item) -> bool:
    return FIXTURE in getattr(item, "fixturenames", ())


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _turns(config: pytest.Config) -> Turns:
    from pyrometer.guard.pytest.turns import Turns

    if _TURNS not in config.stash:
        config.stash[_TURNS] = Turns(cast("Any", config).workerinput["testrunuid"])
    return config.stash[_TURNS]

"""How pytest shows it: failures, options, the document, and sessions that do not use it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pyrometer.guard.pytest.record import SuiteReport
from pyrometer.record import from_json

KEPT = "def test_kept(pyrometer):\n    pyrometer.no_sync_in_step(lambda: torch.ones(3).exp())\n"
BROKEN = """
def test_broken(pyrometer):
    pyrometer.no_sync_in_step(lambda: torch.ones(3).exp())
    pyrometer.no_sync_in_step(lambda: torch.ones(3).exp().sum().item())
"""
UNDECIDED = """
def test_open(pyrometer):
    pyrometer.same_outputs(lambda: torch.rand(2), as_=lambda: torch.rand(2), atol=10)
"""


def test_a_failure_reads_like_an_assertion(run_suite):
    done = run_suite(BROKEN)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([
        ">       pyrometer.no_sync_in_step(lambda: torch.ones(3).exp().sum().item())",
        "E       pyrometer.errors.ContractError: no_sync_in_step broken: <lambda>",
        "E         promised  no step makes the host wait for a device",
        "E         measured  1 wait per step, of 4 steps on cpu",
        "E         where     test_suite.py:8: *item()) (reads a value, 1 per step)",
        "E         next      *",
        "test_suite.py:8: ContractError",
        "*- pyrometer -*",
        "no_sync_in_step kept: <lambda>, 0 waits per step, of 4 steps on cpu",
        "no_sync_in_step broken: <lambda>, 1 wait per step*",
        "2 contracts: 1 kept, 1 broken; 0 measurements",
    ])  # fmt: skip
    assert "guard/pytest" not in done.stdout.str().replace("guard-pytest", "")


def test_an_exception_of_the_work_shows_its_line_and_that_of_the_test(run_suite):
    done = run_suite(
        "def step():\n    raise LookupError('no shard 7')\n\n"
        "def test_raises(pyrometer):\n    pyrometer.no_leak(step)\n"
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            ">       raise LookupError('no shard 7')",
            "test_suite.py:6: LookupError",
            ">       pyrometer.no_leak(step)",
        ]
    )
    assert "/src/pyrometer/" not in done.stdout.str()


@pytest.mark.parametrize(
    ("options", "outcomes"),
    [
        ([], {"failed": 1}),
        (["--pyrometer-undecided=fail"], {"failed": 1}),
        (
            ["--pyrometer-undecided=warn", "-W", "default::pyrometer.pytest.PyrometerWarning"],
            {"passed": 1, "warnings": 1},
        ),
        (["--pyrometer-undecided=pass"], {"passed": 1}),
        (["-o", "pyrometer_undecided=pass"], {"passed": 1}),
        (["-o", "pyrometer_undecided=pass", "--pyrometer-undecided=fail"], {"failed": 1}),
    ],
)
def test_what_is_undecided_passes_only_where_it_was_said(run_suite, options, outcomes):
    done = run_suite(UNDECIDED, *options)
    done.assert_outcomes(**outcomes)
    done.stdout.fnmatch_lines(["1 contract: 1 undecided; 0 measurements"])


@pytest.mark.parametrize(
    "options",
    [
        ["--pyrometer-undecided=perhaps"],
        ["-o", "pyrometer_undecided=perhaps"],
        ["--pyrometer-json=no/such/folder/out.json"],
        ["--pyrometer-json=."],
    ],
)
def test_options_that_cannot_be_used_end_the_session_at_once(run_suite, options):
    done = run_suite(KEPT, *options)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in done.stderr.str()


def test_everything_is_in_the_document(run_suite, pytester):
    text = """
def test_measured(pyrometer):
    m = pyrometer.measure(lambda: torch.ones(3).exp(), budget_s=0.05)
    assert m.median_s < 1

@pytest.fixture
def early(pyrometer):
    pyrometer.no_sync_in_step(lambda: torch.ones(3).exp())
    yield
    pyrometer.no_graph_retained(lambda: torch.ones(3).exp())

def test_around(early):
    pass
"""
    done = run_suite(KEPT + BROKEN + text, "--pyrometer-json=out.json")
    done.assert_outcomes(passed=3, failed=1)
    report = from_json(SuiteReport, (pytester.path / "out.json").read_bytes())
    assert report.exit_status == 1
    assert report.environments[0].torch
    outcomes = {
        item.nodeid.partition("::")[2]: [one.outcome for one in item.contracts] for item in report.items
    }
    assert outcomes == {
        "test_kept": ["kept"],
        "test_broken": ["kept", "broken"],
        "test_measured": [],
        "test_around": ["kept", "kept"],
    }
    assert [len(item.measurements) for item in report.items] == [0, 0, 1, 0]
    assert [item.outcome for item in report.items] == ["passed", "failed", "passed", "passed"]


def test_a_document_of_a_session_that_measured_nothing_is_empty_and_there(run_suite, pytester):
    run_suite("def test_other():\n    pass\n", "--pyrometer-json=out.json").assert_outcomes(passed=1)
    assert json.loads((pytester.path / "out.json").read_text())["items"] == []


def test_without_a_use_nothing_is_said(run_suite):
    done = run_suite("def test_other():\n    pass\n")
    assert "pyrometer:" not in done.stdout.str()
    assert "contracts" not in done.stdout.str()


def test_tests_that_use_it_can_be_selected(run_suite):
    both = KEPT + "\ndef test_other():\n    pass\n"
    run_suite(both, "-m", "not pyrometer", "--strict-markers").assert_outcomes(passed=1, deselected=1)
    run_suite(both, "-m", "pyrometer", "--strict-markers").assert_outcomes(passed=1, deselected=1)


def test_without_the_plugin_other_tests_run(run_suite):
    done = run_suite(KEPT + "\ndef test_other():\n    pass\n", "-p", "no:pyrometer")
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(["*fixture 'pyrometer' not found*"])


def test_a_wider_scope_is_refused_by_pytest(run_suite):
    done = run_suite(
        "@pytest.fixture(scope='module')\ndef wide(pyrometer):\n    return pyrometer\n\n"
        "def test_wide(wide):\n    pass\n"
    )
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*ScopeMismatch*"])


def test_a_fixture_kept_beyond_its_test_does_not_mix_tests(run_suite, pytester):
    text = """
kept = []

def test_first(pyrometer):
    kept.append(pyrometer)

def test_second(pyrometer):
    assert kept[0] is not pyrometer
    pyrometer.no_sync_in_step(lambda: torch.ones(3).exp())
"""
    run_suite(text, "--pyrometer-json=out.json").assert_outcomes(passed=2)
    items = json.loads((pytester.path / "out.json").read_text())["items"]
    assert [item["nodeid"] for item in items] == ["test_suite.py::test_second"]


def test_doctests_and_classes_of_unittest(run_suite, pytester):
    text = '''
import unittest

def double(x):
    """Twice.

    >>> contract = getfixture("pyrometer")
    >>> contract.no_sync_in_step(lambda: double(torch.ones(2))).outcome
    'kept'
    """
    return x * 2

class TestOld(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def give(self, pyrometer):
        self.pyrometer = pyrometer

    def test_kept(self):
        assert self.pyrometer.no_sync_in_step(lambda: torch.ones(3).exp()).outcome == "kept"
'''
    run_suite(text, "--doctest-modules").assert_outcomes(passed=2)


def test_the_type_of_the_fixture_has_a_public_name(run_suite):
    text = """
from pyrometer.pytest import PyrometerFixture, PyrometerWarning

def test_typed(pyrometer: PyrometerFixture):
    assert type(pyrometer) is PyrometerFixture
    assert issubclass(PyrometerWarning, UserWarning)
"""
    run_suite(text).assert_outcomes(passed=1)


def test_asked_for_by_name(run_suite):
    text = "def test_late(request):\n    request.getfixturevalue('pyrometer').no_sync_in_step(lambda: torch.ones(3).exp())\n"
    run_suite(text).assert_outcomes(passed=1)


def test_a_test_waits_for_its_turn_before_others_count_its_time(pytestconfig):
    outermost_last = [one.plugin_name for one in pytestconfig.hook.pytest_runtest_protocol.get_hookimpls()]
    assert outermost_last.index("pyrometer.guard.pytest.plugin") > outermost_last.index("timeout")


@pytest.mark.slow
def test_ctrl_c_ends_the_session_and_what_was_measured_before_is_written(run_suite, pytester):
    text = """
def test_stopped(pyrometer):
    calls = []
    def step():
        calls.append(1)
        if len(calls) > 30:
            raise KeyboardInterrupt
        return torch.ones(3).exp()
    pyrometer.measure(step, budget_s=600)

def test_never(pyrometer):
    raise AssertionError("not reached")
"""
    done = run_suite(KEPT + text, "--pyrometer-json=out.json", apart=True)
    assert done.ret == pytest.ExitCode.INTERRUPTED
    report = json.loads((pytester.path / "out.json").read_text())
    assert report["exit_status"] == 2
    assert [item["nodeid"] for item in report["items"]] == ["test_suite.py::test_kept"]


def test_a_session_that_does_not_use_it_imports_next_to_nothing(pytester):
    pytester.makepyfile(test_other="def test_other():\n    pass\n")
    code = (
        "import sys, pytest\n"
        "status = pytest.main(['-q', '-p', 'no:randomly', '-p', 'no:hypothesispytest'])\n"
        "print('\\n', sorted(name for name in sys.modules if name.startswith('pyrometer')))\n"
        "print([name for name in ('torch', 'numpy', 'scipy', 'polars', 'psutil', 'rich', 'sqlalchemy') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=pytester.path
    )
    *_, ours, heavy = done.stdout.splitlines()
    assert heavy == "[]"
    assert eval(ours) == [
        "pyrometer", "pyrometer.errors", "pyrometer.guard", "pyrometer.guard.pytest", "pyrometer.guard.pytest.plugin",
        "pyrometer.record", "pyrometer.version",
    ]  # fmt: skip

"""Each side with what its own commit asks for: a dependency that changes is compared, and blamed."""

from __future__ import annotations

import json
import sys
import venv
import zipfile

import pytest

from pyrometer.guard import environments
from pyrometer.guard.environments import Checkout, link_pyrometer
from pyrometer.guard.gate import Revision

COPYING = "def doubled(x):\n    return x.clone() * 2\n"
PLAIN = "def doubled(x):\n    return x * 2\n"
PERF = """
import torch
from doubling import doubled


def perf_doubled():
    x = torch.ones(8)
    return lambda: doubled(x)
"""


@pytest.fixture
def guard(call, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_OFFLINE", "1")
    return lambda repo, verb, *arguments: call(
        repo.root, "guard", verb, "--base", "before", "--budget", "1ms", *arguments
    )


@pytest.fixture
def unpacked(monkeypatch):
    """Environments are what an installer would have made of requirements.txt, without the time that it takes; which were made."""
    made = []

    def build(tree, folder, settings, side, *, shared):
        assert not shared
        made.append(side)
        venv.create(folder, symlinks=True)
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        wheel = (tree / "requirements.txt").read_text().split()[-1]
        zipfile.ZipFile(tree / wheel).extractall(folder / "lib" / python / "site-packages")
        return str(folder / "bin" / "python")

    for module in ("check", "blaming"):
        monkeypatch.setattr(f"pyrometer.guard.{module}.build_environment", build)
    return made


@pytest.fixture
def changed(new_repository):
    """A repository whose head asks for another version of what it depends on, beside a change that costs nothing."""
    repo = new_repository("changed")
    before, after = (
        repo.wheel("doubling", version, text) for version, text in (("1.0", PLAIN), ("1.1", COPYING))
    )
    repo.commit(
        {"requirements.txt": f"# needed\n{before}\n", "perf_doubling.py": PERF, "other.py": "x = 1\n"}
    )
    repo.git("branch", "before")
    repo.commit({"requirements.txt": f"# needed\n{after}\n", "other.py": "x = 2\n"})
    return repo


@pytest.mark.slow
def test_a_dependency_that_copies_is_found_since_each_side_has_its_own(changed, guard):
    """And a counter that regressed needs no pair where only the verdict is asked for."""
    done = guard(changed, "check", "--json", "--no-store", "--fail-fast")
    report = json.loads(done.stdout)
    gates = {one["metric"]: one for one in report["gates"]}
    assert "environments of their own: requirements.txt differs" in report["notes"]
    assert (gates["copies"]["base"], gates["copies"]["head"]) == (0, 1)
    assert gates["copies"]["outcome"] == "regressed"
    assert report["num_pairs"] == 0
    assert not any(gate["why"] for gate in report["gates"])
    assert done.returncode == 1
    assert changed.git("worktree", "list").count("\n") == 0


@pytest.mark.slow
@pytest.mark.exhaustive  # lines of code are blamed in the same way
def test_the_line_that_asks_for_it_is_blamed_by_environments_made_for_each_part(changed, guard, unpacked):
    done = guard(changed, "blame", "--json")
    found = json.loads(done.stdout)
    assert [(one["file"], one["line"]) for one in found["hunks"]] == [("requirements.txt", 2)]
    assert found["num_hunks"] == 2
    assert unpacked == ["base", "head", "head", "head"], (
        "one for each part of the lines that ask for something"
    )


@pytest.mark.slow
def test_a_base_that_asks_for_what_is_not_there_is_told_in_a_line(changed, guard):
    changed.git("switch", "--quiet", "--detach", "before")
    changed.commit({"requirements.txt": "./wheels/gone-1.0-py3-none-any.whl\n"})
    changed.git("branch", "--force", "before")
    changed.commit({"requirements.txt": "./wheels/doubling-1.0-py3-none-any.whl\n"})
    done = guard(changed, "check", "--env", "own", "--no-store")
    assert done.returncode == 2
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: base: its environment does not build:")
    assert "gone-1.0" in last
    assert last.endswith(
        "mend the commit, or pass --env shared to run both sides with what is installed here"
    )
    assert changed.git("worktree", "list").count("\n") == 0


@pytest.mark.slow
def test_both_sides_may_share_what_is_installed_here_and_it_is_told(changed, guard):
    done = guard(changed, "check", "--env", "shared", "--no-store", "--json")
    assert done.returncode == 2  # what neither finds installed here
    reasons = {one["reason"] for one in json.loads(done.stdout)["missed"]}
    assert any("No module named 'doubling'" in reason for reason in reasons)


def test_a_compile_cache_holds_what_is_known_of_the_machine_and_nothing_of_another_process(
    tmp_path, monkeypatch
):
    started = []
    monkeypatch.setattr(environments, "Worker", lambda *_, **__: started.append(_[2]))
    probes = tmp_path / "probes"
    probes.mkdir()
    (probes / "probe.so").write_text("of the machine")
    revision = Revision(ref="HEAD", sha="0" * 40)
    side = Checkout(
        "base", revision, tmp_path, tmp_path, sys.executable, (), link_pyrometer(tmp_path), probes=probes
    )
    for name in ("base", "again"):
        side.start(tmp_path / "log", tmp_path / f"cache-{name}")
        (tmp_path / f"cache-{name}" / "inductor" / f"kernel-{name}.so").write_text("of a program")
    folders = [tmp_path / f"cache-{name}" / "inductor" for name in ("base", "again")]
    assert [one["TORCHINDUCTOR_CACHE_DIR"] for one in started] == [str(folder) for folder in folders]
    assert [sorted(file.name for file in folder.iterdir()) for folder in folders] == [
        ["kernel-base.so", "probe.so"],
        ["kernel-again.so", "probe.so"],
    ]
    assert [file.name for file in probes.iterdir()] == ["probe.so"]

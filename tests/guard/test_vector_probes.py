"""What the compiler finds out about the machine can be kept apart from what it makes of a program."""

from __future__ import annotations

import shutil

import pytest

from pyrometer.compiler.private.vector_probes import missing
from pyrometer.guard.environments import probe_compiler


def test_this_torch_can_be_asked():
    assert missing() == []


COMPILER = """#!/bin/sh
case "$*" in *-o*) ;; *) exec g++ "$@" ;; esac
for word; do
  if [ "$before" = -o ]; then exec g++ -shared -x c /dev/null -o "$word"; fi
  before=$word
done
"""
"""Builds an empty library of whatever it is given: what torch's own headers take is not asked for here."""


@pytest.mark.slow
def test_a_cache_that_begins_with_the_probes_makes_none_anew(tmp_path, monkeypatch):
    compiler = tmp_path / "g++"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.delenv("TORCHINDUCTOR_VEC_ISA_OK")
    kept = probe_compiler(tmp_path / "probes")
    made = {file: file.stat().st_mtime_ns for file in kept.rglob("*.so")}
    assert bool(made) == bool(shutil.which("g++"))
    again = probe_compiler(kept)
    assert {file: file.stat().st_mtime_ns for file in again.rglob("*.so")} == made

"""Records of real programs can be trusted: they are of the programs that stand here, of this version, and of no machine."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from mends import MENDS, write_mended
from record_programs import variants_of

from pyrometer.evidence.evidence import VERSION
from recorded import FILES, RECORDED, hash_of, recording

PATHS = sorted(RECORDED.glob("*.json.gz"))
MOST_BYTES = 60_000
every_record = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.partition(".")[0])


def file_of(path: Path, scratch: Path) -> Path:
    """The program that a record is about; a mended copy is written."""
    program, _, variant = path.name.removesuffix(".json.gz").partition("-")
    if program != "mended":
        return FILES[program]
    return write_mended(scratch, next(which for which in MENDS if which.replace(" ", "_") == variant))


def test_every_program_has_its_records() -> None:
    names = {f"{program}-{variant}" for program in FILES for variant in variants_of(program)}
    mended = {f"mended-{which.replace(' ', '_')}" for which in MENDS}
    assert {path.name.removesuffix(".json.gz") for path in PATHS} == names | mended


@every_record
def test_a_record_is_of_the_program_as_it_is_now(path: Path, tmp_path: Path) -> None:
    file = file_of(path, tmp_path)
    record = recording(path.name.removesuffix(".json.gz"), file)
    assert record.source == hash_of(file), f"{file.name} has changed: run `make recordings`"
    assert record.evidence.version == VERSION, "evidence has changed: run `make recordings`"
    variant = "workload" if path.name.startswith("mended") else path.name.partition(".")[0].partition("-")[2]
    assert record.evidence.target == f"{file}:{variant}"


@every_record
def test_a_record_is_small_and_names_no_machine(path: Path) -> None:
    text = gzip.decompress(path.read_bytes()).decode()
    assert path.stat().st_size < MOST_BYTES
    assert set(re.findall(r'"path": "[^"]*", "host": "([^"]*)"', text)) <= {"host"}
    folders = set(re.findall(r"/(?:work|root|tmp|home|usr|opt|var|mnt|Users)/[^\"]*", text))
    assert folders <= {"/tmp/trace.json", "/tmp/rank0.json", "/tmp/rank1.json"}

"""What the terminal shows."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from document_fixtures import changed
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from pyrometer.errors import InputError
from pyrometer.record import to_dict
from pyrometer.report import glyphs, kinds, terminal

SNAPSHOTS = Path(__file__).parent / "snapshots"
NAMES = (
    "steady", "bimodal", "not_steady", "interrupted", "gpu", "training", "no_step",
    "verdict_faster", "verdict_slower", "verdict_same", "verdict_undecided", "verdict_processes",
    "matrix", "starts", "soak", "convolutions",
)  # fmt: skip


def shown(view: RenderableType, *, width: int = 80, encoding: str = "utf-8", **options) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
    Console(file=stream, width=width, highlight=False, _environ={}, **options).print(view)
    stream.flush()
    return raw.getvalue().decode(encoding)


def view_of(document) -> RenderableType:
    return terminal.render_document(kinds.kind_of(document), to_dict(document))


def with_measurement(documents, measurement) -> RenderableType:
    return view_of(changed(documents["steady"], measurement=measurement))


def matches_snapshot(name: str, text: str) -> None:
    """Compare with the stored text; `PYROMETER_UPDATE_SNAPSHOTS=1` stores it instead."""
    path = SNAPSHOTS / name
    plain = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if os.environ.get("PYROMETER_UPDATE_SNAPSHOTS"):
        path.write_text(plain, encoding="utf-8")
    assert plain == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_view_is_as_stored(documents, name):
    matches_snapshot(f"{name}.txt", shown(view_of(documents[name])))


def test_every_document_has_a_snapshot(documents):
    assert set(NAMES) == set(documents)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(documents, name, width):
    assert max(map(len, shown(view_of(documents[name]), width=width).splitlines())) <= width


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_stream_that_cannot_encode_our_characters_gets_others(documents, name, encoding):
    text = shown(view_of(documents[name]), encoding=encoding)
    assert "?" not in text


def test_first_line_is_the_answer(documents):
    assert shown(view_of(documents["verdict_faster"])).startswith("1.42× faster (1.39–1.45) ")
    assert "ms per step (" in shown(view_of(documents["steady"])).splitlines()[0]


def test_colour_only_on_a_terminal_that_wants_it(documents):
    view = view_of(documents["bimodal"])
    assert "\x1b" not in shown(view)
    assert "\x1b[1;33m" in shown(view, force_terminal=True)
    without = shown(view, force_terminal=True, no_color=True)
    assert not [code for code in ("\x1b[1;33m", "\x1b[33m", "\x1b[34m") if code in without]


def test_every_phase_has_its_own_mark(documents):
    ascii_lines = shown(view_of(documents["training"]), encoding="ascii").splitlines()
    names = {phase.name for phase in documents["training"].evidence.measurement.phases}
    marks = [words[0] for line in ascii_lines if len(words := line.split()) > 3 and words[1] in names]
    assert len(marks) == len(set(marks)) == 6


def test_untrusted_text_is_neither_markup_nor_an_escape_sequence(documents):
    document = documents["steady"]
    measurement = msgspec.structs.replace(
        document.evidence.measurement, name="[red]net[/red] \x1b[2Jgone\x07"
    )
    text = shown(view_of(changed(document, measurement=measurement)), force_terminal=True)
    assert "[red]net[/red]" in text
    assert "\x1b[2J" not in text
    assert "\x07" not in text


def test_names_beyond_the_encoding_do_not_fail(documents):
    document = documents["steady"]
    measurement = msgspec.structs.replace(document.evidence.measurement, name="感知网络 🔥")
    text = shown(view_of(changed(document, measurement=measurement)), encoding="ascii")
    assert "????" in text


def test_a_failure_is_the_headline_and_the_first_thing_to_do_once(documents):
    document = documents["steady"]
    measurement = msgspec.structs.replace(
        document.evidence.measurement,
        complete=False,
        failure="step 37 raised ValueError: bad shape (train.py:40)",
    )
    text = shown(view_of(changed(document, measurement=measurement)))
    assert text.startswith("failed in step 37: ValueError (train.py:40)\n")
    assert text.count("step 37 raised ValueError: bad shape") == 1
    assert text.index("Findings") < text.index("Latency")


def test_what_is_not_bounded_says_so_with_its_unit(documents):
    m = documents["steady"].evidence.measurement
    tail = msgspec.structs.replace(m.quantiles[3], value_s=1.12, low_s=0.204, high_s=None)
    text = shown(with_measurement(documents, msgspec.structs.replace(m, quantiles=[*m.quantiles[:3], tail])))
    assert "≥ 204 ms" in text
    unbounded = msgspec.structs.replace(m, throughput_high=float("inf"))
    assert "inf" not in shown(with_measurement(documents, unbounded))


def test_nothing_is_called_trustworthy_that_is_not(documents):
    m = msgspec.structs.replace(documents["steady"].evidence.measurement, steady=False)
    assert "These figures are preliminary" in shown(with_measurement(documents, m))
    verdict = msgspec.structs.replace(documents["verdict_undecided"].verdict, caveats=[])
    assert "What has been seen does not decide it" in shown(
        view_of(changed(documents["verdict_undecided"], verdict=verdict))
    )


def test_verdict_without_interval_is_shown(documents):
    verdict = msgspec.structs.replace(
        documents["verdict_undecided"].verdict, ci_low=None, ci_high=None, log_ratios=[]
    )
    assert "not bounded" in shown(view_of(changed(documents["verdict_undecided"], verdict=verdict)))


@pytest.mark.parametrize(("kind", "document"), [("nonsense", {}), ("bench", {}), ("check", {"target": 3})])
def test_what_cannot_be_shown_is_refused(kind, document):
    with pytest.raises(InputError, match=r"kind of document|not a .* record"):
        terminal.render_document(kind, document)


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1)), min_size=1, max_size=8), st.integers(1, 120))
def test_a_bar_fills_its_width(shares, width):
    cells = glyphs.split_cells(shares, width)
    if sum(shares) > 0:
        wanted = sum(share > 0 for share in shares)
        assert sum(cells) == max(width, wanted)
        assert all(cell >= 1 for cell, share in zip(cells, shares, strict=True) if share > 0)


def test_views_import_no_torch():
    code = (
        "import sys, pyrometer.report.terminal, pyrometer.report.markdown, pyrometer.report.html; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

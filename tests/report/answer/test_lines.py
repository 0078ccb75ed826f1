"""Texts on a screen of fixed width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pyrometer.report.answer.lines import MOST_LINES, clipped, flowing, screen, shortened, wrapped
from pyrometer.report.answer.parts import gathered, rounded
from pyrometer.report.answer.short import Fix, Part, ShortAnswer, Whole

WORDS = st.text("ab 卷积 /·:…", max_size=200)


@given(WORDS, st.integers(4, 90))
def test_no_text_is_wider_than_its_room(text, cells):
    assert cell_len(clipped(text, cells)) <= cells
    assert cell_len(shortened(text, cells)) <= cells
    assert cell_len(flowing(text, cells)) <= cells
    assert max(map(cell_len, wrapped(text, cells)), default=0) <= cells


@given(st.builds(ShortAnswer, name=WORDS, figure=WORDS, bound=WORDS, alerts=st.lists(WORDS, max_size=4),
    fixes=st.lists(st.builds(Fix, name=WORDS, gain=st.just("1.03–1.29× faster"), code=st.just("PYR506"), sentence=WORDS, place=WORDS, write=WORDS), max_size=6),
    whole=st.none() | st.builds(Whole, title=st.just("Where the time goes"), unit=st.just("ms"), parts=st.lists(st.builds(Part, name=WORDS, figure=st.just("31.1"), share=st.just(0.5), note=WORDS), max_size=12)),
    trust=WORDS, improve=WORDS, kept=st.dictionaries(st.just("Report"), WORDS, max_size=1)))  # fmt: skip
def test_any_answer_fits_a_screen(answer):
    lines = screen(answer, 80)
    assert len(lines) <= MOST_LINES
    assert max(line.cell_len for line in lines) <= 80


@given(
    st.lists(st.floats(0.001, 1), min_size=1, max_size=8), st.sampled_from(["38.2", "9.99", "214", "0.125"])
)
def test_written_parts_add_up_to_the_written_whole(sizes, whole):
    kept = gathered([(str(i), size) for i, size in enumerate(sizes)])
    decimals = len(whole.partition(".")[2])
    figures = rounded([share for _, share in kept], whole)
    assert f"{sum(map(float, figures)):.{decimals}f}" == whole


def test_the_middle_of_a_path_is_left_out():
    assert shortened("camera.backbone.0.conv1, perception.py:96", 24) == "camera.backb…ption.py:96"


def test_a_fix_gives_way_from_the_last_one():
    long = "It costs time, and more than that, and it goes on so for quite some lines. " * 3
    answer = ShortAnswer("a.py", "1 ms/step", fixes=[Fix(f"rule-{n}", sentence=long, write="x = 1\ny = 2\nz = 3") for n in (1, 2, 3)],
        whole=Whole("Parts", "ms", [Part(str(n), "1", 0.2) for n in range(5)]), trust="high")  # fmt: skip
    lines = [line.plain for line in screen(answer, 80)]
    assert len(lines) == MOST_LINES
    heads = [lines.index(f"{n} rule-{n}") for n in (1, 2, 3)]
    assert heads[1] - heads[0] >= heads[2] - heads[1] >= 3
    assert [line.strip() for line in lines[heads[1] - 3 : heads[1]]] == ["x = 1", "y = 2", "z = 3"]

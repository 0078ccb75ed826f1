"""What of our script a page carries: what its widgets need, and never a piece without those before it."""

from __future__ import annotations

import json
import re

import pytest

from pyrometer.errors import InputError
from pyrometer.report.inline import asset, inline, pieces, script
from pyrometer.report.payloads.beside import texts
from pyrometer.report.widgets import PLACES

DRAWN = sorted({widget for areas in PLACES.values() for widget, _ in areas})


def registered(code: str) -> set[str]:
    """The widgets that a script knows, as they introduce themselves to its register."""
    register = re.search(r"function ([\w$]+)\((\w+),(\w+),[^)]*\)\{[\w$]+\.set\(\2,\3\)", code)
    assert register is not None
    return set(re.findall(rf'(?<![\w$.]){re.escape(register[1])}\("(\w+)",', code))


@pytest.mark.parametrize("widget", DRAWN)
def test_every_widget_that_is_placed_has_its_piece(widget):
    assert any(widget in needing for needing, _ in pieces())
    assert widget in registered(str(script([widget]).text))


def test_a_page_without_drawings_carries_only_what_every_page_needs():
    plain, full = str(script([]).text), str(script(DRAWN).text)
    assert not registered(plain)
    assert len(plain) < len(full) / 4
    assert "live" not in registered(full)
    assert plain.startswith("(()=>{")
    assert plain.rstrip().endswith("})();")


def test_the_same_widgets_give_the_same_script_in_any_order():
    assert script(["memory", "idle"]) is script(["idle", "memory", "idle"])
    assert "//@" not in script(DRAWN).text


def test_the_whole_is_its_pieces():
    whole = str(inline("report.js").text)
    everyone = {name for needing, _ in pieces() for name in needing}
    rest = re.sub(r"^//@.*\n", "", whole, flags=re.MULTILINE)
    assert str(script(everyone).text) == rest


def test_what_a_piece_needs_stands_before_it():
    """Pieces that more widgets need stand first: whatever needs the later ones has the earlier ones too."""
    counts = [len(needing) for needing, _ in pieces() if needing]
    assert counts == sorted(counts, reverse=True)


def test_texts_stand_in_the_same_order_in_both_languages():
    english, chinese = (json.loads(asset(name)) for name in ("english.json", "chinese.json"))
    assert len(english) == len(set(english)) == len(chinese)
    carried = re.search(r'data-block="language/en">(.*?)</script>', str(texts()), re.DOTALL)
    assert carried is not None
    assert all(isinstance(text, str) for text in json.loads(carried[1]))


def test_references_to_texts_are_within_the_table():
    name = re.search(r"([\w$]+)=JSON\.parse\(document\.querySelector\(", str(inline("report.js").text))
    assert name is not None
    used = {
        int(place)
        for place in re.findall(rf"(?<![\w$.]){re.escape(name[1])}\[(\d+)\]", str(inline("report.js").text))
    }
    assert len(used) > 300
    assert max(used) < len(json.loads(asset("english.json")))


def test_a_missing_asset_is_told_with_the_way_to_make_it():
    with pytest.raises(InputError, match="build it with make web"):
        asset("absent.js")

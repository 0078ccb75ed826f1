from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.rules.lint.document import read_document


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x = 1",
        b"x = 1\r\ny = 2\r\n",
        b"x = 1\ry = 2\r",
        b"x = 1\r\ny = 2\n",
        codecs.BOM_UTF8 + b"x = 1\n",
        codecs.BOM_UTF8 + b"# coding: utf-8\nx = 1\n",
        "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
        "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '€'\n".encode("cp1252"),
        "# coding: shift_jis\nx = '日本'\n".encode("shift_jis"),
        "x = 'é'\x0c\n\ty = 1\n".encode(),
        "\ufeffx = '\u2028'\n".encode(),
    ],
)
def test_what_is_not_changed_comes_back_byte_by_byte(data: bytes):
    document = read_document("a.py", data)
    assert not document.text.startswith("\ufeff")
    assert document.encode(document.text) == data
    assert document.cell_line(3) == (None, 3)


@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])))
def test_any_text_in_utf8_comes_back(text: str):
    data = text.encode()
    try:
        document = read_document("a.py", data)
    except InputError:
        return  # what looks like a coding line of an unknown encoding
    assert document.encode(document.text) == data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x = 1\ny = '\xe9'\n", "a.py:2: not utf-8: invalid continuation byte; say its encoding in line 1"),
        (b"# coding: no-such\nx = 1\n", "a.py:1: unknown encoding: no-such"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", "a.py:1: encoding problem: utf-8"),
        (b"x = 1\n\n\0\n", "a.py:3: a null byte; this is no source text"),
        ("x = 1\n".encode("utf-16"), "a.py:1: "),
    ],
)
def test_what_is_no_text_is_refused_with_its_line(data: bytes, message: str):
    with pytest.raises(InputError) as caught:
        read_document("a.py", data)
    assert str(caught.value).startswith(message)


def test_a_character_that_the_encoding_does_not_have_is_refused():
    document = read_document("a.py", b"# coding: latin-1\n")
    with pytest.raises(InputError, match="'€' cannot be written in iso-8859-1"):
        document.encode("# coding: latin-1\nx = '€'\n")

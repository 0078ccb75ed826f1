"""Files are written whole or not at all."""

from __future__ import annotations

import pytest

from pyrometer.files import replacing


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    place = tmp_path / "out.txt"
    place.write_text("old")

    def fail() -> None:
        with replacing(place) as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.txt", "old")]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(OSError, match="No such file"), replacing(tmp_path / "no" / "out.txt") as beside:
        beside.write_text("text")

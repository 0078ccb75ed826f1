"""Secrets of a program that works, in its command line, its path, its modules and its failures."""

from __future__ import annotations

from pathlib import Path

import pytest
from telling import everything_told

from pyrometer.cli.main import main

PROGRAM = """
import torch, pyrometer as pm

KEY = "gsk_canary0AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEf"

class Client(torch.nn.Linear):
    def __init__(self):
        super().__init__(8, 8)
        self.connection = "AccountName=a;AccountKey=canary+abc/def0123456789==;x=y"
        self.cookies = {"sid": "canary"}

    def extra_repr(self):
        return f"at https://me:p@canary/x@host/v1 with {KEY}"

    def forward(self, x):
        if x.shape[0] == 3:
            raise RuntimeError(f"403: {KEY} may not ask {self.connection}, nor with cookies={self.cookies}")
        return super().forward(x)

def work():
    return pm.Inference(Client(), torch.randn(4, 8))

def failing():
    return pm.Inference(Client(), torch.randn(3, 8))
"""


@pytest.mark.parametrize(("verb", "entry"), [("bench", "work"), ("check", "failing")])
def test_they_reach_no_stream_no_page_and_no_store(tmp_path: Path, monkeypatch, capfd, verb, entry):
    folder = tmp_path / "password=canary-folder"
    folder.mkdir()
    (folder / "model.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    words = [verb, f"{folder.name}/model.py:{entry}", "--json", "-o", "page.html", "--budget", "200ms"]
    monkeypatch.setattr("sys.argv", ["pyrometer", *words])
    assert main(words) == (4 if entry == "failing" else 0)
    captured = capfd.readouterr()
    assert "canary" not in everything_told(captured.out, captured.err, tmp_path)

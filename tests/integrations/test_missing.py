"""Without its framework a callback says what to install."""

from __future__ import annotations

import importlib
import sys

import pytest

from pyrometer.errors import InputError


@pytest.mark.parametrize("name", ["transformers", "lightning"])
def test_what_is_missing_is_named_with_its_package(name, monkeypatch):
    for module in [module for module in sys.modules if module.partition(".")[0] in {name, f"pytorch_{name}"}]:
        monkeypatch.setitem(sys.modules, module, None)
    for module in (name, f"pytorch_{name}"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"pyrometer.integrations.{name}", raising=False)
    with pytest.raises(InputError, match=f"needs {name}, which is not installed; .* pip install {name}"):
        importlib.import_module(f"pyrometer.integrations.{name}")

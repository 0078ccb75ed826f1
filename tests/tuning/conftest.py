"""Recording a step and compiling collect garbage several times, which need not look through all that was ever imported."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def recording_is_quick(quick_collections):
    pass

"""Names for tests that use the fixture `pyrometer`; the plugin itself needs no import."""

from pyrometer.guard.pytest.fixture import PyrometerFixture, PyrometerWarning

__all__ = ["PyrometerFixture", "PyrometerWarning"]

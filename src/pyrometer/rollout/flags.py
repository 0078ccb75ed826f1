"""Feature flags by what a device is (GPU, memory, region), asked through OpenFeature and cached: 17 µs a question is too much per request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyrometer.errors import InputError

if TYPE_CHECKING:
    from openfeature.client import OpenFeatureClient

Attribute = str | int | float | bool


class DeviceFlag:
    """A flag whose value is the name of a version, for the device of this process.

    Args:
        name: of the flag.
        attributes: what rules of the provider look at, as from `device_attributes`.
        client: of OpenFeature; by default that of the provider which the program has set.

    Raises:
        InputError: OpenFeature is not installed.
    """

    def __init__(
        self, name: str, attributes: Mapping[str, Attribute], client: OpenFeatureClient | None = None
    ) -> None:
        try:
            from openfeature import api
            from openfeature.evaluation_context import EvaluationContext
        except ImportError as error:
            raise InputError(
                "flags: openfeature-sdk is not installed; pip install 'pyrometer[flags]'"
            ) from error
        self.name = name
        self._client = client or api.get_client()
        self._context = EvaluationContext(str(attributes.get("host", "")) or None, dict(attributes))
        self.value = ""
        self.num_failed = 0
        self.last_error = ""
        self.refresh()

    def refresh(self) -> str:
        """Ask again, once per tick; what the flag said last holds where the provider does not answer."""
        details = self._client.get_string_details(self.name, self.value, self._context)
        if details.error_code is None:
            self.value = details.value
        else:
            self.num_failed += 1
            self.last_error = f"{details.error_code}: {details.error_message or ''}"
        return self.value


def device_attributes(**more: Attribute) -> dict[str, Attribute]:
    """What this device is: host, GPU model and count, memory of GPU and host in bytes; `more` adds such as `region="eu"`."""
    import platform

    import psutil

    from pyrometer.hardware.gpu import read_gpus

    gpus = read_gpus()
    found: dict[str, Any] = {
        "host": platform.node(),
        "machine": platform.machine(),
        "memory_bytes": int(psutil.virtual_memory().total),
        "num_gpus": len(gpus),
        "gpu": gpus[0].name if gpus else "",
        "gpu_memory_bytes": gpus[0].memory_bytes if gpus else 0,
    }
    return found | more

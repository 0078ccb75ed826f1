"""How much work damage may cost, so that reading a damaged file takes a small multiple of reading a sound one."""

from __future__ import annotations

LEAST_BYTES = 1 << 20
"""Walked over in vain in any file, however small."""

SHARE = 1 / 64
"""Of the text, that may be walked over in vain: a walk in Python is about a hundred times slower than decoding."""

LONGEST_MENDED = 1 << 18
"""Bytes of the longest event that is mended: a longer one is torn, not misspelt."""

DECODED = 1 / 64
"""What a byte that was decoded in vain counts."""


class Effort:
    """Bytes that were walked over in vain, and whether more may be.

    What was mended costs nothing here: a file in which every event is damaged in the same way is mended whole. What could
    not be mended does, since text that makes no sense costs many attempts for each of its bytes.

    >>> effort = Effort()
    >>> effort.allows(1000)
    True
    >>> effort.spend(LEAST_BYTES)
    >>> effort.allows(1000)
    False
    """

    def __init__(self) -> None:
        self._allowed = float(LEAST_BYTES)
        self._spent = 0.0

    def earn(self, num_bytes: int) -> None:
        """Take note of text that was read."""
        self._allowed += num_bytes * SHARE

    def allows(self, num_bytes: int, in_vain: float = 0.0) -> bool:
        """Whether so many bytes may be walked over, after others for the same event."""
        return num_bytes <= LONGEST_MENDED and self._spent + in_vain + num_bytes <= self._allowed

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be walked over."""
        return self._spent >= self._allowed

    def spend(self, num_bytes: float) -> None:
        """Count what an event took that is lost all the same."""
        self._spent += num_bytes

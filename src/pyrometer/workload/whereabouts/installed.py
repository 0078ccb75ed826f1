"""Where Python keeps what is installed rather than written by the user."""

from __future__ import annotations

import sysconfig

INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
"""Folders of the standard library and of packages; paths of code that came with them begin with one."""

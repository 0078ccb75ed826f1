"""What a user sets once: flags come first, then `PYROMETER_*`, then `[tool.pyrometer]` in `pyproject.toml`.

::

    [tool.pyrometer]
    store = ".pyrometer"     # PYROMETER_STORE, --store
    margin = "5%"            # PYROMETER_MARGIN, --margin
    confidence = "99%"       # PYROMETER_CONFIDENCE
    budget = "20s"           # PYROMETER_BUDGET, --budget
    seed = 0                 # PYROMETER_SEED
    capture = "stack,shapes" # PYROMETER_CAPTURE
    strict = true            # PYROMETER_STRICT
    progress = false         # PYROMETER_PROGRESS

Tables below it, such as `[tool.pyrometer.rules]`, are read by those whom they configure.

Durations, shares and sizes are read here, from flags, variables and files alike:

>>> parse_duration("1m30s"), parse_share("1%"), parse_bytes("2GiB")
(90.0, 0.01, 2147483648)
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import R, Record, doc, from_dict

_PREFIX = "PYROMETER_"
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
# Largest first: the order in which the parts of a duration must be written.
_DURATION_UNITS = (
    ("d", 86400.0),
    ("h", 3600.0),
    ("(?:min|m)", 60.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("(?:us|µs|μs)", 1e-6),  # both micro signs are typed
    ("ns", 1e-9),
)
_DURATION = re.compile(r"\s*".join(rf"(?:({_NUMBER})\s*{unit})?" for unit, _ in _DURATION_UNITS))
_SHARE = re.compile(rf"({_NUMBER}(?:e-[0-9]+)?)\s*(%?)")
_BYTES = re.compile(rf"({_NUMBER})\s*([kmgtp]i?)?b", re.IGNORECASE)
_BYTE_POWERS = "kmgtp"


class Settings(Record, frozen=True, kw_only=True):
    """What holds for every verb unless a flag says otherwise.

    Raises:
        InputError: a value outside its legal range.
    """

    store: Annotated[str, doc("folder that runs are kept in")] = ".pyrometer"
    margin: Annotated[float, doc("how far from 1 a ratio may be and still be called the same")] = 0.05
    confidence: Annotated[float, doc("coverage of every interval")] = 0.99
    budget_s: Annotated[
        Seconds | None, doc("time that a measurement may take; null leaves it to the verb")
    ] = None
    seed: Annotated[int, doc("start of every random choice")] = 0
    capture: Annotated[str, doc("what a captured trace holds beside times, or none")] = (
        "stack,shapes,memory,modules"
    )
    strict: Annotated[bool, doc("refuse damaged trace files instead of mending them")] = False
    progress: Annotated[bool, doc("say on stderr how far a verb is: a bar, or a line every 5 s")] = True

    def __post_init__(self) -> None:
        """Refuse values that no verb could use; runs for every copy as well."""
        require(bool(self.store), "store", repr(self.store), "the name of a folder, such as .pyrometer")
        require(0 < self.margin < 1, "margin", self.margin, "above 0% and below 100%, such as 2%")
        require(
            0.5 <= self.confidence < 1,
            "confidence",
            self.confidence,
            "50% or more and below 100%, such as 99%",
        )
        require(self.budget_s is None or self.budget_s > 0, "budget", self.budget_s, "above 0 s, such as 20s")
        require(self.seed >= 0, "seed", self.seed, "0 or a positive whole number")


def require(condition: bool, key: str, value: object, legal: str) -> None:
    """Refuse a value.

    Raises:
        InputError: the condition does not hold; says what is legal.
    """
    if not condition:
        raise InputError(f"{key}: got {value}; legal is {legal}")


def parse_duration(text: str) -> Seconds:
    """Read a duration; the parts are written from large to small, each with its unit.

    >>> parse_duration("500ms"), parse_duration("20s"), parse_duration("1m30s"), parse_duration("1 h 5 min")
    (0.5, 20.0, 90.0, 3900.0)

    Raises:
        InputError: no duration, or a number without a unit.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise InputError(
            f"{text!r} is not a duration; write a number and d, h, m, s, ms, us or ns, such as 20s or 1m30s"
        )
    parts = zip(match.groups(), _DURATION_UNITS, strict=True)
    return _finite(math.fsum(float(number) * scale_s for number, (_, scale_s) in parts if number), text)


def parse_switch(text: str) -> bool:
    """Read a switch.

    >>> parse_switch("1"), parse_switch("False")
    (True, False)

    Raises:
        InputError: neither on nor off.
    """
    known = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    if text.strip().lower() not in known:
        raise InputError(f"got {text!r}; legal are true and false")
    return known[text.strip().lower()]


def parse_share(text: str) -> float:
    """Read a share of one, as a percentage or a fraction.

    >>> parse_share("1%"), parse_share("12.5 %"), parse_share("0.05")
    (0.01, 0.125, 0.05)

    Raises:
        InputError: no share, or one outside 0 to 100 %.
    """
    match = _SHARE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is not a share; write a percentage such as 5% or a fraction such as 0.05")
    share = float(match[1]) / (100 if match[2] else 1)
    if share > 1:
        meant = "" if match[2] or share > 100 else f"; did you mean {match[1]}%?"
        raise InputError(f"{text!r} is more than 100%; legal is 0% to 100%{meant}")
    return share


def parse_bytes(text: str) -> Bytes:
    """Read a size; KiB, MiB, GiB, TiB, PiB count in 1024s, kB, MB, GB, TB, PB in 1000s.

    >>> parse_bytes("2GiB"), parse_bytes("1.5 MB"), parse_bytes("512B")
    (2147483648, 1500000, 512)

    Raises:
        InputError: no size, or a number without a unit.
    """
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"{text!r} is not a size; write a number and B, KiB, MiB, GiB, kB, MB or GB, such as 2GiB"
        )
    prefix = (match[2] or "").lower()
    power = _BYTE_POWERS.index(prefix[0]) + 1 if prefix else 0
    return round(_finite(float(match[1]) * (1024 if prefix.endswith("i") else 1000) ** power, text))


def _finite(value: float, text: str) -> float:
    if math.isinf(value):
        raise InputError(f"{text[:20]!r}… is too large a number")
    return value


def _parse_seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{text!r} is not a whole number; write one such as 0") from None


class _Key(NamedTuple):
    field: str
    parse: Callable[[str], Any]


_KEYS = {
    "store": _Key("store", str),
    "margin": _Key("margin", parse_share),
    "confidence": _Key("confidence", parse_share),
    "budget": _Key("budget_s", parse_duration),
    "seed": _Key("seed", _parse_seed),
    "capture": _Key("capture", str),
    "strict": _Key("strict", parse_switch),
    "progress": _Key("progress", parse_switch),
}
TABLES = ("rules", "guard", "monitor", "serve", "tune")
"""Tables within `[tool.pyrometer]` that others read, each with `read_table(file, name)`."""


def find_project(cwd: Path) -> Path | None:
    """The nearest `pyproject.toml` in this folder or above."""
    here = cwd.resolve()
    files = (folder / "pyproject.toml" for folder in (here, *here.parents))
    return next((file for file in files if file.is_file()), None)


def read_table(file: Path, name: str | None = None) -> dict[str, Any]:
    """Read `[tool.pyrometer]` of a `pyproject.toml`, or the table `name` within it; empty where there is none.

    Raises:
        InputError: the file cannot be read, or something else than a table stands there; or, where a table within is
            read, a name beside it that nobody knows, as it may be this one misspelled; the message names it.
    """
    try:
        table: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: cannot be read as TOML: {error}; correct it or move it away") from error
    path = ("tool", "pyrometer") if name is None else ("tool", "pyrometer", name)
    for depth, key in enumerate(path, 1):
        if key == name:
            _refuse_unknown(table, file)
        table = _as_table(table.get(key, {}), file, ".".join(path[:depth]))
    return table


def load_table(
    kind: type[R],
    name: str,
    cwd: Path,
    given: Mapping[str, Any],
    *,
    spelled: Mapping[str, tuple[str, Callable[[str], Any]]],
    folders: Iterable[str] = (),
) -> R:
    """The settings of `[tool.pyrometer.NAME]` of the project in a folder, under those that are given and not None.

    Args:
        kind: of the settings; keys are its fields, and may have hyphens.
        name: of the table.
        cwd: where the project is looked for.
        given: what wins over the file.
        spelled: keys that name their field without its unit, with what parses their text.
        folders: fields that count from the folder of the file.

    Raises:
        InputError: an unreadable file, an unknown key or a bad value.
    """
    file, fields = find_project(cwd), kind.__struct_fields__
    unknown = [key for key in given if key not in fields]
    if unknown:
        raise InputError(f"{name}: {unknown[0]}: no such setting; legal are {', '.join(fields)}")
    found: dict[str, Any] = {}
    for key, value in (read_table(file, name) if file is not None else {}).items():
        field, parse = spelled.get(key, (key.replace("-", "_"), None))
        if field not in fields:
            near = difflib.get_close_matches(field, fields, n=1)
            meant = f"did you mean {near[0]}?" if near else f"legal are {', '.join(fields)}"
            raise InputError(f"{file}: [tool.pyrometer.{name}] {key}: no such setting; {meant}")
        found[field] = parse(value) if parse is not None and isinstance(value, str) else value
        if field in folders and found[field] and file is not None:
            found[field] = str(file.parent / found[field])
    found |= {key: value for key, value in given.items() if value is not None}
    return from_dict(kind, msgspec.to_builtins(found))


def _refuse_unknown(keys: Iterable[str], file: Path) -> None:
    for key in keys:
        if key not in _KEYS and key not in TABLES:
            raise InputError(f"{file}: [tool.pyrometer] {key}: no such setting{_did_you_mean(key)}")


def _as_table(value: Any, file: Path, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{file}: {place}: got {value!r}; legal is a table, [{place}]")
    return value


def load_settings(environ: Mapping[str, str], cwd: Path) -> Settings:
    """Read the settings for a process with this environment in this folder.

    `[tool.pyrometer]` is read from the nearest `pyproject.toml` in `cwd` or above; a relative `store` there counts
    from that file's folder. Variables win over the file.

    Raises:
        InputError: an unreadable file, an unknown key or a bad value; the message names the file or variable.
    """
    settings = Settings()
    file = find_project(cwd)
    if file is not None:
        settings = _with_file(settings, file)
    for variable in sorted(environ):
        key = variable.removeprefix(_PREFIX).lower()
        if variable.startswith(_PREFIX) and key in _KEYS:
            settings = _with_value(settings, key, environ[variable], source=variable)
        elif variable.startswith(_PREFIX) and difflib.get_close_matches(key, _KEYS):
            raise InputError(f"{variable}: no such setting{_did_you_mean(key, prefix=_PREFIX)}")
    return settings


def with_flags(settings: Settings, **flags: Any) -> Settings:
    """Put flags over settings; a flag that is `None` was not given.

    >>> with_flags(Settings(), margin=0.01, seed=None).margin
    0.01

    Raises:
        InputError: a value outside its legal range.
    """
    return msgspec.structs.replace(
        settings, **{field: value for field, value in flags.items() if value is not None}
    )


def _with_file(settings: Settings, file: Path) -> Settings:
    table = read_table(file)
    _refuse_unknown(table, file)
    for key, value in table.items():
        source = f"{file}: [tool.pyrometer]"
        if key in TABLES:
            _as_table(value, file, f"tool.pyrometer.{key}")
            continue
        is_switch = isinstance(value, bool) and _KEYS[key].parse is parse_switch
        if not is_switch and (isinstance(value, bool) or not isinstance(value, (str, int, float))):
            raise InputError(f"{source} {key}: got {value!r}; legal is a string or a number")
        text = _beside(file, value) if key == "store" else str(value)
        settings = _with_value(settings, key, text, source=source)
    return settings


def _beside(file: Path, store: object) -> str:
    text = str(store)
    return text if not text or "://" in text else str(file.parent / text)


def _with_value(settings: Settings, key: str, text: str, *, source: str) -> Settings:
    field, parse = _KEYS[key]
    try:
        return msgspec.structs.replace(settings, **{field: parse(text)})
    except InputError as error:
        message = str(error).removeprefix(f"{key}: ")
        named = source if source.startswith(_PREFIX) else f"{source} {key}"
        raise InputError(f"{named}: {message}") from error


def _did_you_mean(key: str, prefix: str = "") -> str:
    def spelled(name: str) -> str:
        return prefix + (name.upper() if prefix else name)

    legal = list(_KEYS) if prefix else [*_KEYS, *TABLES]
    near = difflib.get_close_matches(key, legal, n=1)
    if near:
        return f"; did you mean {spelled(near[0])}?"
    return f"; legal are {', '.join(spelled(name) for name in legal)}"

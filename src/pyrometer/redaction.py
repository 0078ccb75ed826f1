"""What must never be kept or shown: passwords, tokens and keys, known by their names, by their shapes, and by where they came from.

By name: `--password x`, `-p x` beside `-u me`, `--api-key=x`, `db.password=x`, `API_KEY=x`, `token="x"`, `?sig=x`, `{"secret": "x"}`. By shape: keys of
AWS and Google, tokens of GitHub, GitLab, Hugging Face, Slack and others, JSON web tokens, private keys, cookies, `Bearer x`, `curl -u me:x`,
`https://user:x@host`.
By origin: what the environment or the command line of this process holds under such a name, wherever it turns up again.

Names that end in `token` are often no secret here (`--pad-token`, `max_token`): those of `_OF_MODELS` stay.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast
from urllib.parse import unquote

import msgspec

T = TypeVar("T")

STAND_IN = "REDACTED"
"""What stands in the place of a secret."""

SHORTEST = 6
"""Characters of a value that is looked for elsewhere: shorter ones are words of their own too often."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRETS = frozenset({"password", "passwd", "passphrase", "passcode", "secret", "secrets", "credential", "credentials", "apikey", "auth", "cookie"})  # fmt: skip
_ENDINGS = (
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "authtoken",
    "accesstoken",
    "secretkey",
    "accesskey",
    "csrftoken",
    "sshpass",
    "dbpass",
    "userpass",
)
_KEYS = frozenset({
    "api", "access", "secret", "private", "auth", "account", "encryption", "signing", "master", "ssh", "license", "service", "wandb",
    "openai", "anthropic", "hf", "aws", "azure", "storage", "subscription", "deploy", "client", "kaggle", "shared",
})  # fmt: skip
_OF_MODELS = frozenset({
    "pad", "padding", "bos", "eos", "mask", "unk", "cls", "sep", "image", "video", "audio", "vision", "special", "start", "end", "stop", "per",
    "next", "class", "blank", "sos", "max", "min", "num", "n", "new", "prefix", "suffix", "register", "dist", "begin", "control", "query",
    "null", "label", "task", "text", "additional", "last", "first", "prev", "previous", "current", "input", "output", "this", "a", "the",
    "each", "every", "one", "single", "language", "lang", "sentence", "word", "think", "thinking", "tool", "draft", "decode", "top", "by",
    "for", "of", "in", "is", "to", "ms", "s", "us", "cost", "time", "latency", "eot", "fim", "space", "newline", "speech", "sink", "summary",
    "global", "memory", "mem", "reg", "pos", "position", "action", "state", "dummy", "object", "latent", "context", "timestep", "patch",
    "target", "source", "src", "tgt", "dep", "cond", "modality", "frame", "attn", "attention", "chunk", "segment", "separator", "nl", "bot",
})  # fmt: skip
_PASS_OF = frozenset({
    "db", "database", "user", "login", "smtp", "mysql", "pg", "postgres", "redis", "mongo", "http", "proxy", "ssh", "ftp", "mail", "email",
    "rabbitmq", "admin", "root", "sudo",
})  # fmt: skip

_PAT_OF = frozenset({"github", "gitlab", "gh", "azure", "ado"})
_ONLY_OF = {"key": _KEYS, "pass": _PASS_OF, "pw": _PASS_OF, "pat": _PAT_OF}
"""Words that are of secrets only behind one of these."""

_SUSPECT = re.compile(
    r"pass|pwd|_pat|login|secret|token|key|credential|auth|cookie|bearer|://|A[KS]IA|ARO|AIDA|gh[a-z]_|github_pat|gl[a-z]{2,4}-|hf_|api_org_|sk-|xox|AIza|"
    r"xapp-|ya29|npm_|pypi-|eyJ|sig|hooks\.slack|[rs]k_|SG\.|hv[sb]\.|GOCSPX|r8_|gsk_|xai-|nvapi-|do[opr]_v1_|shp[a-z]{2}_|lin_api_|dapi|webhook|"
    r"bot\d|user|-[uU] |curl|IQoJ|FwoG|dckr_|pul-|sbp_|sntrys_|figd_|ATATT3|ntn_|SK[0-9a-f]{30}|1//0|EAA",
    re.IGNORECASE,
)
"""A text without any of these holds no secret that is known by name or shape."""

_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}"
    r"|\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}\b"
    r"|\bgh[a-z]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bgl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[\w-]{16,}"
    r"|\b(?:hf_|api_org_)(?=[A-Za-z0-9]*[A-Z0-9])[A-Za-z0-9]{20,}"
    r"|(?<![\w-])sk-(?=[\w-]*\d)[\w-]{16,}"
    r"|\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/]{20,}|\bhv[sb]\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}|\br8_(?=[A-Za-z]*\d)[A-Za-z0-9]{30,40}\b"
    r"|\bgsk_(?=[A-Za-z]*\d)[A-Za-z0-9]{40,}|\bxai-(?=[A-Za-z]*\d)[A-Za-z0-9]{40,}|\bnvapi-[\w-]{40,}|\bdo[opr]_v1_[0-9a-f]{32,}|\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    r"|\blin_api_[A-Za-z0-9]{20,}|\bdapi[0-9a-f]{32}\b|\bbot\d{6,12}:[\w-]{30,}|(?<=/webhooks/)\d{15,}/[\w-]{30,}|(?<=/IncomingWebhook/)[\w/-]{20,}"
    r"|\bxapp-[\w-]{10,}|\bxox[a-z]-[\w-]{10,}|\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{40,}"
    r"|\bSG\.[\w-]{16,}\.[\w-]{16,}|hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]+"
    r"|\b(?:IQoJ|FwoG)(?=[\w+/]*\d)[\w+/]{40,}={0,2}|\bdckr_pat_[\w-]{20,}|\bpul-[0-9a-f]{40}\b|\bsbp_[0-9a-f]{40}\b|\bsntrys_[\w+/=]{20,}|\bfigd_[\w-]{20,}"
    r"|\bATATT3[\w=-]{30,}|\b(?:ntn|secret)_(?=[A-Za-z]*\d)[A-Za-z0-9]{40,}\b|\bSK[0-9a-f]{32}\b|\bkey-[0-9a-f]{32}\b|(?<![\w/])1//0[\w-]{30,}|\bEAA(?=[A-Za-z]*\d)[A-Za-z0-9]{60,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
    re.DOTALL,
)
_URL = re.compile(
    r"(?P<scheme>\b[A-Za-z][\w+.-]{0,30}://)(?!\[)"
    r"(?:[^\s/'\"<>?#:]*:(?P<password>[^\s/'\"<>?#]+)(?=@[\w.:%\[\]-]+(?:[^\w.:%#@-]|$))|[^\s/'\"<>?#:@]{16,}"
    r"|[^\s/'\"<>?#:@]*:(?!\d+[/?#])(?P<odd>[^\s'\"<>]{1,200}))@(?=[\w\[])"
)
_HEADER = re.compile(r"(\bauthorization\b[\"']?\s*[:=]\s*b?[\"']?(?:[A-Za-z]+\s+)?|\bX-[\w-]{0,40}-(?:Token|Auth):\s*|\bbearer\s+(?=[^\s\"']*(?:[\d._-]|(?-i:[a-z][A-Z]))))([^\s\"',;]{6,})", re.IGNORECASE)  # fmt: skip
_COOKIE = re.compile(
    r"(\b(?:set-)?cookie:\s*|<cookie (?=[\w.-]+=))[\w.-]+=[^\n\"']*|(\bcookies\s?=\s?\{)[^{}\n]*[\"'][^{}\n]*(?=\})",
    re.IGNORECASE,
)
_PROGRAM = re.compile(
    r"(\bwandb login (?:-\S+ ){0,4}|\bsshpass -p ?|\b(?:mysql|mariadb)\w*\b[^\n|;]{0,200}? -p(?=\S)|(?<![\w-])(?:-u|--user|--proxy-user)[ =]"
    r"(?!\d+:\d+\b)[\w.@-]+:(?!//)|(?<![\w-])(?:-[uU]|--user(?:name)?)[ =]\S+ (?:-\S+ ){0,2}-p (?![\d.]+(?:\s|$)|-)|\bcurl\b[^\n|;]{0,200}? -b [\"']?[\w.-]+="
    r"|-pass(?:in|out)? pass:|\bpassword (?=\S*\d\S*\s*$|\S*\d\S* +(?:machine|account)\b)|[\"']username[\"']: ?[\"'][^\"']*[\"'], ?[\"']key[\"']: ?[\"'])"
    r"[^\s\"']{6,}",
    re.MULTILINE,
)
# Names and gaps have an end in these patterns, so that a long line of anything takes time in proportion to its length.
_QUERY = re.compile(r"([?&;])([\w.-]+)=([^\s&;#'\"<>]+)")
_FLAG = re.compile(r"(?<![\w-])(?P<before>--?(?P<name>[A-Za-z][\w.-]{0,80})(?:=|[ \t]+))(?P<value>\"[^\"]*\"|'[^']*'|[^\s'\",;)\]}-][^\s'\",;)\]}]*)")  # fmt: skip
_QUOTED = re.compile(
    r"(?P<before>(?P<name>[A-Za-z_][\w.-]{0,80})[\"']?\]?\s{0,8}(?::\s{0,8}[\w.\[\] |]{1,60}?)?\s{0,8}[:=!]?[:=]\s{0,8}[rbfuRBFU]{0,2})(?P<value>\"\"\"[^\"]+\"\"\"|\"[^\"]*\"|'[^']*')"
)
_DEFAULT = re.compile(r"(?P<before>[\"'](?P<name>-{0,2}[A-Za-z_][\w.-]{0,80})[\"']\s*,(?:[^\n]{0,200}?\bdefault\s*=)?\s{0,8})(?P<value>\"[^\"]*\"|'[^']*')")  # fmt: skip
_SHELL = re.compile(r"(?<![\w.-])(?P<before>(?P<name>[A-Z][A-Z0-9_]*)=)(?P<value>[^\s'\",;)\]}]+)")
_BARE = re.compile(
    r"(?<![\w.-])(?P<before>(?P<name>[A-Za-z_][\w.-]{0,80})=)(?=[^\s'\",;()\[\]{}]{0,200}[\d!@#%^*+~$-])(?P<value>[^\s'\",;()\[\]{}]{6,})(?![\[(])"
)
_DOTTED = re.compile(
    r"(?<![\w.-])(?P<before>[+~]*(?P<name>(?!self\.|cls\.)[A-Za-z_]\w*(?:\.\w+)+)=)(?P<value>[^\s'\",;()\[\]{}=]+)(?![\[(])"
)
_COLON = re.compile(
    r"(?<![\w.-])(?P<before>(?P<name>[A-Za-z_][\w-]*(?<![Tt]oken)(?<![Aa]uth)): +)(?=[^\s'\",]*\d)(?P<value>[^\s'\",]{6,})"
)
_LONG = re.compile(
    r"(?<![\w.-])(?P<before>(?P<name>[A-Za-z_][\w-]{0,80})(?:: {1,8}| {1,8}= {1,8}))(?=[^\s'\",]{0,200}\d)(?=[^\s'\",]{0,200}[a-z])(?!0x)(?P<value>[A-Za-z0-9+/=_~-]{20,})(?![\w.(\[])"
)
_LINE = re.compile(
    r"^(?P<before>[ \t]*(?:- )?(?P<name>[A-Za-z_][\w-]{0,80})(?<![Tt]oken)(?<![Aa]uth):[ \t]{1,8})"
    r"(?!(?:str|string|bytes|Any|Optional|Union|Secret\w*|Callable|Sequence)\b)(?P<value>[^\s'\",|>(\[]{6,})[ \t]*$",
    re.MULTILINE,
)
_FOLDER = re.compile(r"(?<=/)(?P<before>(?P<name>[A-Za-z_][\w.-]{0,80})=)(?P<value>[^\s/'\"]+)(?=/|$)")
_LOGIN = re.compile(
    r"(\blogin\(\s*(?:key\s*=\s*)?|\bauth\s*=\s*\([^,()]*,\s*|\bcredentials?:?\s*\([^,()]*,\s*|\b(?:password|passphrase|api key)\s+)(?:\"[^\"]+\"|'[^']+')",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(r"[\"']?(?:=|\$|%|<|\[|\{|None\b|null\b|REDACTED|[\"']?$)")
"""How a value begins that only stands for one: a variable, a placeholder, a special token."""

_NOTHING = re.compile(r"None|null|REDACTED|")
_USERS = frozenset({"-u", "-U", "--user", "--username", "--login"})
_ODD = re.compile(r"[!#$%^&*?]")
"""Of passwords that have to hold some such sign."""


def is_secret(name: str) -> bool:
    """Whether something of this name is no one else's to know.

    >>> [is_secret(name) for name in ("--hf-token", "DB_PASSWORD", "apiKey", "--pad-token", "max_tokens", "tokenizer", "key")]
    [True, True, True, False, False, False, False]
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if len(words) > 2 and words[-3:] == ["access", "key", "id"]:
        words.pop()
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "token":
        return before not in _OF_MODELS
    if last in _ONLY_OF:
        return before in _ONLY_OF[last]
    if last == "pwd":
        return bool(before) or name.startswith("-")
    return last in _SECRETS or last.endswith(_ENDINGS)


class Redactor:
    """Takes secrets out of texts, command lines and records.

    Args:
        environ: variables whose values, where their names are of secrets, are looked for wherever they turn up.
        argv: a command line, likewise.
    """

    def __init__(self, environ: Mapping[str, str], argv: Sequence[str] = ()) -> None:
        known = {*_secret_values(environ), *(value for _, value in _secrets_of(argv))}
        known |= {value for text in (*environ.values(), *argv) for value in _passwords_in(text)}
        known |= {line for value in known for line in value.splitlines()}
        usable = sorted((value for value in known if len(value) >= SHORTEST), key=len, reverse=True)
        self._known = re.compile("|".join(map(_bounded, usable))) if usable else None
        self._texts: dict[str, str] = {}

    def text(self, text: str) -> str:
        """A text without the secrets in it; the same object where there are none."""
        if text not in self._texts:
            self._texts[text] = self._without(text)
        kept = self._texts[text]
        return text if kept == text else kept

    def _without(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(STAND_IN, text)
        if _SUSPECT.search(text) is None:
            return text
        text = _SHAPES.sub(STAND_IN, text)
        text = _URL.sub(rf"\g<scheme>{STAND_IN}@", text)
        for pattern in (_HEADER, _PROGRAM):
            text = pattern.sub(rf"\1{STAND_IN}", text)
        text = _COOKIE.sub(rf"\1\2{STAND_IN}", text)
        text = _QUERY.sub(_query, text)
        text = _LOGIN.sub(rf"\1'{STAND_IN}'", text)
        for pattern in (_FOLDER, _FLAG, _QUOTED, _SHELL, _BARE, _DOTTED, _COLON, _LONG, _LINE):
            text = pattern.sub(_named, text)
        return _DEFAULT.sub(_defaulted, text)

    def argv(self, argv: Sequence[str]) -> list[str]:
        """A command line without the secrets in it."""
        kept = list(argv)
        for index, value in _secrets_of(argv):
            kept[index] = kept[index].removesuffix(value) + STAND_IN
        return [self.text(word) for word in kept]

    def value(self, value: T) -> T:
        """A record, or lists and dictionaries, without the secrets in it; the same object where there are none."""
        return cast("T", self._walked(value))

    def _walked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, msgspec.Struct):
            return self._of_record(value)
        if isinstance(value, (list, tuple)):
            return self._of_list(value)
        if isinstance(value, dict):
            kept = {self._walked(key): self._of_entry(key, item) for key, item in value.items()}
            if all(map(_same, kept.values(), value.values())) and kept.keys() == value.keys():
                return value
            return kept
        return value

    def _of_record(self, record: msgspec.Struct) -> msgspec.Struct:
        changed = {}
        for name in record.__struct_fields__:
            before = getattr(record, name)
            after = self._walked(before)
            if after is not before:
                changed[name] = after
        return msgspec.structs.replace(record, **changed) if changed else record

    def _of_list(self, items: list[Any] | tuple[Any, ...]) -> Any:
        kinds = set(map(type, items))
        if kinds <= {int, float, bool, type(None)}:
            return items
        if kinds == {str} and isinstance(items, list):
            kept = self._of_lines(items)
        else:
            kept = [self._walked(item) for item in items]
        if all(map(_same, kept, items)):
            return items
        # A named tuple is made of its items one by one.
        return type(items)(*kept) if hasattr(items, "_fields") else type(items)(kept)

    def _of_lines(self, lines: list[str]) -> list[str]:
        """A command line, or lines of a file: a private key goes over several."""
        whole = "\n".join(lines)
        if "PRIVATE KEY-----" not in whole:
            if any(line.startswith("-") or "=" in line for line in lines):
                return self.argv(lines)
            return list(map(self.text, lines))
        kept = _SHAPES.sub(lambda match: STAND_IN + "\n" * match[0].count("\n"), whole)
        return [self.text(line) for line in kept.split("\n")]

    def _of_entry(self, key: Any, item: Any) -> Any:
        if (
            isinstance(key, str)
            and isinstance(item, str)
            and item
            and is_secret(key)
            and not _UNKNOWN.match(item)
        ):
            return STAND_IN
        return self._walked(item)


def redactor() -> Redactor:
    """For what this process writes: with the secrets of its environment and its command line."""
    return Redactor(os.environ, sys.argv)


def redacted(value: T) -> T:
    """A text, a record, or lists and dictionaries without the secrets in it; the same object where there are none.

    >>> redacted("postgres://me:hunter2@db/runs and --api-key 123 of train.py")
    'postgres://REDACTED@db/runs and --api-key REDACTED of train.py'
    """
    return redactor().value(value)


def redacted_argv(argv: Sequence[str]) -> list[str]:
    """A command line without the secrets in it.

    >>> redacted_argv(["train.py", "--password", "x", "db.token=y", "--pad-token", "0"])
    ['train.py', '--password', 'REDACTED', 'db.token=REDACTED', '--pad-token', '0']
    """
    return Redactor(os.environ, [*sys.argv, *argv]).argv(argv)


def _secrets_of(argv: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Where a command line holds a secret by name, and its value: after a flag, or after an equals sign."""
    for index, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if re.fullmatch(r"[\w.+-]+", name) is None:
            continue
        place = index if equals else index + 1
        if not equals:
            value = argv[place] if word.startswith("-") and place < len(argv) else ""
        if not value or (not equals and value.startswith("-")) or _NOTHING.fullmatch(value):
            continue
        if is_secret(name) or (word.startswith("-") and _is_short_for_secret(name, value, argv)):
            yield place, value


def _is_short_for_secret(flag: str, value: str, argv: Sequence[str]) -> bool:
    """Whether a flag that has other meanings as well is of a secret here, by its value and by what stands beside it."""
    if re.fullmatch(r"[\d.]+|true|false", value, re.IGNORECASE):
        return False
    if flag in {"--pass", "--pw", "-pw"}:
        return True
    if flag in {"-p", "-P"}:
        return (
            not _USERS.isdisjoint(word.partition("=")[0] for word in argv) or _ODD.search(value) is not None
        )
    is_long = re.fullmatch(r"(?=.*\d)(?=.*[A-Za-z])[\w+/=-]{20,}", value) is not None
    return is_long and flag.lower().endswith(("-key", "_key"))


def _secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        if is_secret(name) and value not in {"disabled", "enabled", "default"}:
            yield value


def _passwords_in(text: str) -> Iterator[str]:
    """Those of the addresses in a text, as written and as the server gets them."""
    if "://" in text:
        for match in _URL.finditer(text):
            password = match["password"] or match["odd"] or ""
            yield from {password, unquote(password)}


def _bounded(value: str) -> str:
    """A pattern for a known value: a short one as a word of its own, since it may be part of others."""
    pattern = re.escape(value)
    return pattern if len(value) >= 2 * SHORTEST else rf"(?<!\w){pattern}(?!\w)"


def _query(match: re.Match[str]) -> str:
    if match[2].lower() in {
        "sig",
        "key",
        "code",
        "x-amz-signature",
        "x-goog-signature",
        "signature",
        "pwd",
    } or is_secret(match[2]):
        return f"{match[1]}{match[2]}={STAND_IN}"
    return match[0]


def _named(match: re.Match[str]) -> str:
    value = match["value"]
    if not is_secret(match["name"] if match["before"][0] != "-" else f"-{match['name']}") or _UNKNOWN.match(
        value
    ):
        return match[0]
    quote = value[0] if value[0] in "\"'" else ""
    if quote and len(value.strip(quote)) < SHORTEST and match["name"].lower().endswith("token"):
        return match[0]  # a word of a text, as in `token == "cls"`: no token that lets anyone in is as short
    return f"{match['before']}{quote}{STAND_IN}{quote}"


def _defaulted(match: re.Match[str]) -> str:
    """`add_argument("--password", default="x")`, `getenv("API_KEY", "x")`; a list of column names is neither."""
    return _named(match) if "default" in match["before"] or match["name"].isupper() else match[0]


_same = partial(lambda a, b: a is b)

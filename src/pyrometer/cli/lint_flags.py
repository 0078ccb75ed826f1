"""What `pyrometer lint` was asked for: its flags together, which exclude each other, and the settings they give."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.errors import UsageError

if TYPE_CHECKING:
    from pyrometer.rules.lint.changing import Change
    from pyrometer.rules.settings import RuleSettings

STDIN = "-"


class LintFlags(NamedTuple):
    """All flags, each called after itself; `ignore` and `form` have a second spelling."""

    paths: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    isolated: bool = False
    stdin_filename: str | None = None
    fix: bool = False
    fix_only: bool = False
    unsafe: bool = False
    diff: bool = False
    reason: str | None = None
    baseline: Path | None = None
    update: bool = False
    form: str = "text"
    statistics: bool = False
    output: Path | None = None
    quiet: bool = False
    exit_zero: bool = False
    show_files: bool = False
    watch: bool = False
    lsp: bool = False

    @property
    def reads_stdin(self) -> bool:
        """Whether the text comes from stdin: a path of `-`, or no path where the name of that text is given."""
        return STDIN in self.paths or (self.stdin_filename is not None and not self.paths)

    @property
    def fixes(self) -> bool:
        """Whether files are mended."""
        return self.fix or self.fix_only

    @property
    def changes(self) -> bool:
        """Whether any text changes, or would."""
        return self.fixes or self.diff or self.reason is not None

    def change(self) -> Change:
        """What a file becomes."""
        from pyrometer.rules.lint.changing import excuses, fixes
        from pyrometer.rules.lint.fixing import EVERY_CLASS, EXACT

        if self.reason is not None:
            return excuses(self.reason)
        return fixes(EVERY_CLASS if self.unsafe else EXACT)

    def settings(self, folder: Path | None = None) -> RuleSettings:
        """The settings of a folder, by default of this one, with the flags over them.

        Raises:
            InputError: a file of settings that cannot be used.
            UsageError: a selector that names no rule.
        """
        from pyrometer.rules.settings import load_rule_settings, with_rule_flags

        settings = load_rule_settings(folder or self._folder(), config=self.config, isolated=self.isolated)
        return with_rule_flags(
            settings,
            select=_split(self.select),
            extend_select=_split(self.extend_select),
            ignore=_split(self.ignore),
            exclude=_split(self.exclude),
        )

    def _folder(self) -> Path:
        """Where settings are looked for: beside the file that stdin is a text of, else here."""
        beside = Path(self.stdin_filename or "").absolute().parent
        return beside if self.stdin_filename and beside.is_dir() else Path.cwd()

    def refuse_conflicts(self) -> None:
        """Refuse what would be left undone in silence.

        Raises:
            UsageError: flags that do not go together.
        """
        for clash, said in self._clashes_of_lsp() if self.lsp else self._clashes():
            if clash:
                raise UsageError(said)

    def _clashes_of_lsp(self) -> list[tuple[object, str]]:
        """Conditions, and what is to be said where one holds."""
        doing = self.paths or self.reads_stdin or self.watch or self.show_files
        writing = self.changes or self.update or self.baseline or self.output
        return [
            (
                doing,
                "--lsp serves an editor, which names the files; leave out paths, --watch and --show-files",
            ),
            (
                writing,
                "--lsp serves an editor, which applies fixes itself; leave out what changes or writes files",
            ),
        ]

    def _clashes(self) -> list[tuple[object, str]]:
        stdin, known = self.reads_stdin, self.update or self.baseline
        alone = self.reason is not None
        return [
            (
                not self.paths and not stdin,
                "no path was named; pass files, folders, patterns, or - for stdin",
            ),
            (
                self.stdin_filename is not None and not stdin,
                "--stdin-filename names the text on stdin; leave out the other paths, or pass -",
            ),
            (
                stdin and (len(self.paths) > 1 or known or alone),
                "- reads one text from stdin; leave out other paths, --baseline and --add-ignores",
            ),
            (
                stdin and (self.watch or self.show_files),
                "- reads one text from stdin; --watch and --show-files need files",
            ),
            (
                self.unsafe and not (self.fixes or self.diff),
                "--unsafe-fixes goes with --fix or --diff",
            ),
            (self.fixes and self.diff, "--diff shows what --fix would write; pass one of them"),
            (
                alone and (self.fixes or self.diff or known),
                "--add-ignores goes without fixes and baselines; fix first, then ignore what is left",
            ),
            (
                self.update and self.changes,
                "--update-baseline changes no sources; fix first, then write it",
            ),
            (
                self.statistics and self.form not in ("text", "concise", "json"),
                f"--statistics: got --output-format {self.form}; legal are text, concise and json",
            ),
            (
                self.diff and (self.form not in ("text", "concise") or self.statistics or self.output),
                "--diff prints a diff; leave out --output-format, --statistics and --output",
            ),
            (
                self.show_files and (self.changes or self.update or self.watch),
                "--show-files lists files and looks into none; leave out what changes or watches them",
            ),
            (
                self.watch and (self.diff or self.update or alone or self.output),
                "--watch goes on and on; leave out --diff, --add-ignores, --update-baseline and --output",
            ),
        ]


def _split(texts: tuple[str, ...]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]

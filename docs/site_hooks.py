"""What MkDocs does beside its plugins when it builds the site: pages made from the code, and pictures that follow the palette."""  # noqa: INP001 - loaded by MkDocs

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import site_reference

GENERATED: dict[str, Callable[[], str]] = {
    "api.md": site_reference.api_page,
    "flags.md": site_reference.flags_page,
    "schemas.md": site_reference.schemas_page,
}
"""Pages that are not kept in the repository, since the code says it all."""

PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\s*'
    r'<img src="(?P<light>[^"]+)" alt="(?P<alt>[^"]*)"[^>]*>\s*</picture>'
)
"""How the pages show one picture in two colours, which GitHub understands."""

UNTRANSLATED = '!!! note ""\n    本页目前只有英文版。\n\n'


@event_priority(100)
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is generated before the languages are told apart."""
    for name in GENERATED:
        files.append(File(name, config.docs_dir, config.site_dir, config.use_directory_urls))
    return files


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:  # noqa: ARG001 - MkDocs gives it
    """The text of a generated page; of others MkDocs reads the file."""
    make = GENERATED.get(page.file.src_uri)
    return make() if make else None


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Let pictures follow the palette, lead links to pages of the site, and say so where there is no Chinese."""
    text = PICTURE.sub(r"![\g<alt>](\g<light>#only-light)![\g<alt>](\g<dark>#only-dark)", markdown)
    text = text.replace("](schemas)", "](schemas.md)")
    if getattr(page.file, "locale_alternate_of", "en") == "zh" and page.file.localization is None:
        head, _, rest = text.partition("\n")
        text = f"{head}\n\n{UNTRANSLATED}{rest}"
    return text

"""README, the examples and the changes as pages of the site, read where they are; for mkdocs, which runs it as a hook.

What is written for the checkout is turned into what holds on the site: links, and lists that follow a line of text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {"README.md": "index.md", "examples/README.md": "examples.md", "CHANGELOG.md": "changes.md",
             "CONTRIBUTING.md": "contributing.md"}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
FENCE, ENTRY = re.compile(r" *(```|~~~)"), re.compile(r"([-*+]|1\.) ")


def on_files(files: Files, config: Any) -> Files:
    for path, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """The text with the links of the site. What is no page of it stays, and mkdocs says so."""
    path = next((path for path, name in ELSEWHERE.items() if name == page.file.src_uri), f"docs/{page.file.src_uri}")

    def turned(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[1]))
        place = ELSEWHERE.get(target, target.removeprefix("docs/") if target.startswith("docs/") else "")
        return posixpath.relpath(place, posixpath.dirname(page.file.src_uri)) if place else link[1]

    return LINK.sub(turned, _lists_apart(markdown))


def _lists_apart(markdown: str) -> str:
    """With an empty line before a list, which Python's Markdown needs and GitHub's does not."""
    lines: list[str] = []
    code = listed = False
    for line in markdown.splitlines():
        entry = ENTRY.match(line) is not None and not code
        if entry and not listed and lines and lines[-1]:
            lines.append("")
        code ^= FENCE.match(line) is not None
        listed = entry or (listed and (not line or line.startswith(" ")))
        lines.append(line)
    return "\n".join(lines)

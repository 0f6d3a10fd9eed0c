"""docs/ as a site: mkdocs builds it without a warning, it shows what GitHub-like viewers show, fetches nothing from
elsewhere, and fits a small screen.
"""

from __future__ import annotations

import functools
import html
import http.server
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

from tests.docs.page import ROOT
from tests.ui.conftest import browser

__all__ = ["browser"]  # a fixture

FRONT = {"README.md": "index", "examples/README.md": "examples", "CHANGELOG.md": "changes"}
PAGES = {**FRONT, **{f"docs/{path.name}": path.stem for path in sorted((ROOT / "docs").glob("*.md"))}}
STRUCTURE = ("h1", "h2", "h3", "ul", "ol", "li", "table", "tr", "td", "pre", "a", "strong", "em")
VIEWER = MarkdownIt("commonmark").enable("table")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder it is built in; a warning is a failure."""
    pytest.importorskip("material", reason="not installed (extra docs)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(ROOT / "mkdocs.yml")]
    done = subprocess.run([*command, "--site-dir", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def shown(site: Path, path: str) -> str:
    """The article of a page, without what the site adds to it."""
    (article,) = re.findall(
        r"<article.*?>(.*?)</article>", (site / f"{PAGES[path]}.html").read_text("utf-8"), re.DOTALL
    )
    return re.sub(r'<a class="headerlink".*?</a>|<a id="__code.*?</a>', "", article, flags=re.DOTALL)


def structure(text: str) -> Counter[str]:
    return Counter(tag for tag in re.findall(r"<(\w+)", text) if tag in STRUCTURE)


@pytest.mark.full
@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_the_parts_that_other_viewers_show(site: Path, path: str) -> None:
    assert structure(shown(site, path)) == structure(VIEWER.render((ROOT / path).read_text("utf-8")))


def written_links(path: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", (ROOT / path).read_text("utf-8"), flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def test_links_between_pages_hold_in_the_checkout() -> None:
    broken = []
    for path in PAGES:
        for link in written_links(path):
            file, _, part = link.partition("#")
            target = ((ROOT / path).parent / file).resolve() if file else ROOT / path
            if not target.exists() or (part and part not in named_as_on_github(target)):
                broken.append((path, link))
    assert broken == []


@pytest.mark.full
@pytest.mark.parametrize("path", PAGES)
def test_links_between_pages_hold_on_the_site(site: Path, path: str) -> None:
    links = re.findall(r'<a href="(?!\w+:)([^"]*)"', shown(site, path))
    assert len(links) == len([link for link in written_links(path) if "://" not in link])
    for link in links:
        file, _, part = link.partition("#")
        target = site / (file or f"{PAGES[path]}.html")
        assert target.exists(), link
        assert not part or f'id="{part}"' in target.read_text("utf-8"), link


def named_as_on_github(page: Path) -> set[str]:
    """What a heading is called in a link."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(leaves(navigation)) == sorted(f"{page}.md" for page in PAGES.values())
    assert leaves(navigation)[0] == "index.md"


def leaves(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [leaf for each in (entry.values() if isinstance(entry, dict) else entry) for leaf in leaves(each)]


@pytest.mark.full
def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    assert not (site / "site").exists()  # the hook is no page
    for page in site.glob("*.html"):
        text = page.read_text("utf-8")
        fetched = re.findall(r'<(?:script|img|iframe|source)[^>]*\ssrc="([^"]*)"|<link[^>]*\shref="([^"]*)"', text)
        assert [html.unescape(a or b) for a, b in fetched if re.match(r"\w+:|//", a or b)] == [], page.name
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import\s*)[\"']?(?:https?:)?//", sheet.read_text("utf-8")) == [], sheet.name


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.mark.full
def test_it_fits_a_small_screen_and_follows_the_systems_colours(address: str, browser: Any) -> None:
    grounds = set()
    for width, scheme in ((400, "light"), (1280, "dark")):
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for page in ("index", "operate", "model"):
            browser.get(f"{address}/{page}.html")
            assert browser.execute_script("return document.scrollingElement.scrollWidth") <= width
            elsewhere = (
                "performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin))"
            )
            assert browser.execute_script(f"return {elsewhere}") == []
        grounds.add(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []

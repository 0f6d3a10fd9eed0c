"""The pages of docs/ are run as a reader would, each in an empty folder; what they name exists.

As a site they show what GitHub-like viewers show, fetch nothing from elsewhere, and fit a small screen.
"""

from __future__ import annotations

import functools
import html
import http.server
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from markdown_it import MarkdownIt

from streamtrain.cli.app import app
from streamtrain.compute import layers, losses, minimizers, ops, optimizers, schedules, vertices
from streamtrain.compute.metrics import CONSTANT
from streamtrain.compute.model import Model
from streamtrain.compute.options import Option
from streamtrain.job import Job
from tests.docs.page import ROOT, Shell, blocks, spans
from tests.ui.conftest import browser

PAGES = sorted((ROOT / "docs").glob("*.md"))
OPTIONAL = ("torch",)  # pages of packages that the tests do not ask for


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_runs(page: Path, kafka: Any, tmp_path: Path) -> None:
    if page.stem in OPTIONAL:
        pytest.importorskip(page.stem, reason=f"not installed (extra {page.stem})")
    name = kafka.fresh_name("taxi")
    host, _, port = kafka.bootstrap.rpartition(":")
    assert host in ("127.0.0.1", "localhost")
    shell = Shell(tmp_path, int(port))
    try:
        for kind, text in blocks(page):
            assert kind in ("sh", "python", "toml", "yaml"), kind
            if kind in ("sh", "python"):
                shell.run(kind, _renamed(text, name))
    finally:
        shell.end()


def _renamed(text: str, name: str) -> str:
    """The pages' job under a name of its own: tests share a Kafka."""
    text = re.sub(r"\btaxi\.(toml|records|requests|predictions)\b", rf"{name}.\1", text)
    text = re.sub(r"/(predict|v2/models)/taxi\b", rf"/\1/{name}", text)
    return text.replace('"taxi"', f'"{name}"')


def commands(page: Path) -> Iterator[str]:
    for kind, text in blocks(page):
        yield from (line for line in text.splitlines() if kind == "sh" and line.startswith("streamtrain "))
    yield from (span for span in spans(page) if re.match(r"(streamtrain|train|produce) \S", span))


def options_of(name: str) -> set[str]:
    """The options of a command, or of all below it."""
    command = typer.main.get_command(import_module(f"streamtrain.cli.commands.{name.replace('-', '_')}").app)
    below = getattr(command, "commands", {"": command})
    return {option for entry in below.values() for parameter in entry.params for option in parameter.opts}


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_commands_files_and_links_of_a_page_exist(page: Path) -> None:
    root = typer.main.get_command(app)
    for command in commands(page):
        name, *words = [word for word in shlex.split(command, comments=True) if word != "streamtrain"]
        assert name in root.list_commands(None), command
        assert {word.split("=")[0] for word in words if word.startswith("-")} <= options_of(name), command
    for span in spans(page):
        if re.match(r"(native|compute|topics|streamtrain|tests|examples|deploy|docs)/", span) and "x." not in span:
            assert (ROOT / span).exists(), span
    for target in re.findall(r"\]\(([\w./-]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_readme_names_every_page_and_many_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert [page.name for page in PAGES if f"docs/{page.name}" not in text] == []
    assert len(list(commands(ROOT / "README.md"))) > 20


MODEL, FIT = ROOT / "docs" / "model.md", ROOT / "docs" / "fit.md"
SPAN = re.compile(r"`([^`]+)`(?: \(((?:`[^`]+`(?:, )?)+)\))?")  # an entry, and its settings in parentheses
Settings = dict[str, Any]  # with the default that is told, or ...


def tables(page: Path) -> Iterator[list[list[str]]]:
    """Their rows' cells, those of the head first."""
    for table in re.findall(r"(?:^\|.*\|\n)+", page.read_text("utf-8"), re.MULTILINE):
        head, _, *rows = table.splitlines()
        yield [[cell.strip() for cell in line.strip("|").split(" | ")] for line in (head, *rows)]


def table(page: Path, first: str) -> list[dict[str, str]]:
    """The rows of the table whose first column is called that, by column."""
    (found,) = [cells for cells in tables(page) if cells[0][0].strip() == first]
    return [dict(zip(found[0], row, strict=True)) for row in found[1:]]


def told(page: Path, first: str) -> dict[str, Settings]:
    """The settings of each entry: `{ entry = 1, setting = 2 }`, or `entry` (`setting`, `setting = 3`), or all in a
    column of settings."""
    found: dict[str, Settings] = {}
    for row in table(page, first):
        for span, more in SPAN.findall(row[first]):
            if span.startswith("{"):
                name, *settings = re.findall(r"(\w+) = ", span)
                found[name] = dict.fromkeys(settings, ...)
                continue
            settings = re.findall(r"`([^`]+)`", f"{more} {row.get('settings', '')}")
            found[span.strip('"')] = dict(map(_setting, settings))
    return found


def _setting(text: str) -> tuple[str, Any]:
    name, _, default = text.partition("=")
    return name.strip(), tomllib.loads(f"x = {default}")["x"] if default else ...


def check(found: Mapping[str, Settings], known: Mapping[str, Mapping[str, Option]]) -> None:
    assert sorted(found) == sorted(known)
    for name, settings in found.items():
        assert sorted(settings) == sorted(known[name]), name
        defaults = {setting: default for setting, default in settings.items() if default is not ...}
        assert defaults == {setting: known[name][setting].default for setting in defaults}, name


def without_own(name: str) -> Mapping[str, Option]:
    """The settings of a layer but for the one that names it."""
    return {key: option for key, option in layers.options(name).items() if key != name}


@pytest.mark.parametrize(
    ("page", "first", "registry", "options"),
    [
        (MODEL, "layer", layers, without_own),
        (MODEL, "vertex", vertices, vertices.options),
        (MODEL, "loss", losses, losses.options),
        (MODEL, "optimizer", optimizers, optimizers.own_options),
        (MODEL, "schedule", schedules, schedules.own_options),
        (FIT, "`optimizer=`", minimizers, lambda name: minimizers.get(name).OPTIONS),
    ],
)
def test_a_table_has_the_entries_of_a_registry(page: Path, first: str, registry: Any, options: Any) -> None:
    check(told(page, first), {name: options(name) for name in registry.names()})


def test_what_optimizers_share() -> None:
    shared = [name for row in table(MODEL, "setting") for name in re.findall(r"`(\w+)`", row["setting"])]
    assert sorted(shared) == sorted(optimizers.COMMON)
    for row in table(MODEL, "optimizer"):
        names = [span for span, _ in SPAN.findall(row["optimizer"])]
        assert {optimizers.get(name).RATE for name in names} == {float(row["usual rate"])}, names


def test_activations() -> None:
    _, _, rest = MODEL.read_text("utf-8").partition("\nWhat a layer takes as `activation`, ")
    sentence = rest.partition(" is any of ")[2].partition(";")[0]
    assert sorted(re.findall(r"`(\w+)`", sentence)) == sorted(ops.activations())


def test_figures() -> None:
    """All that models of any loss are measured by: of few classes other ones than of many."""
    known = set[str]()
    for loss in losses.names():
        for classes in (3, 101) if losses.label_kind(loss) == "class" else (None,):
            label = {"role": "label"} | ({} if classes is None else {"classes": classes})
            job = Job.from_tables({"columns": {"x": {}, "y": label}, "model": {"loss": loss}})
            known |= set(Model(job.model_spec()).figures)
    assert sorted(told(MODEL, "figure")) == sorted(name for name in known if not name.startswith(CONSTANT))
    of_the_constant = set(re.findall(rf"`({CONSTANT}\w+)`", MODEL.read_text("utf-8")))
    assert of_the_constant == {name for name in known if name.startswith(CONSTANT)}


@pytest.mark.parametrize(
    ("found", "known"),
    [
        ({"sgd": {"momentum": 0.1}}, {"sgd": {"momentum": optimizers.own_options("sgd")["momentum"]}}),
        ({"sgd": {}}, {"sgd": {"momentum": optimizers.own_options("sgd")["momentum"]}}),
        ({"sgd": {"mass": ...}}, {"sgd": {}}),
        ({"sgd": {}, "gone": {}}, {"sgd": {}}),
        ({}, {"sgd": {}}),
    ],
)
def test_what_differs_is_seen(found: Any, known: Any) -> None:
    with pytest.raises(AssertionError):
        check(found, known)


__all__ = ["browser"]  # a fixture

FRONT = {"README.md": "index", "examples/README.md": "examples", "CHANGELOG.md": "changes"}
ON_SITE = {**FRONT, **{f"docs/{path.name}": path.stem for path in sorted((ROOT / "docs").glob("*.md"))}}
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
        r"<article.*?>(.*?)</article>", (site / f"{ON_SITE[path]}.html").read_text("utf-8"), re.DOTALL
    )
    return re.sub(r'<a class="headerlink".*?</a>|<a id="__code.*?</a>', "", article, flags=re.DOTALL)


def structure(text: str) -> Counter[str]:
    return Counter(tag for tag in re.findall(r"<(\w+)", text) if tag in STRUCTURE)


@pytest.mark.full
@pytest.mark.parametrize("path", ON_SITE)
def test_a_page_has_the_parts_that_other_viewers_show(site: Path, path: str) -> None:
    assert structure(shown(site, path)) == structure(VIEWER.render((ROOT / path).read_text("utf-8")))


def written_links(path: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", (ROOT / path).read_text("utf-8"), flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def test_links_between_pages_hold_in_the_checkout() -> None:
    broken = []
    for path in ON_SITE:
        for link in written_links(path):
            file, _, part = link.partition("#")
            target = ((ROOT / path).parent / file).resolve() if file else ROOT / path
            if not target.exists() or (part and part not in named_as_on_github(target)):
                broken.append((path, link))
    assert broken == []


@pytest.mark.full
@pytest.mark.parametrize("path", ON_SITE)
def test_links_between_pages_hold_on_the_site(site: Path, path: str) -> None:
    links = re.findall(r'<a href="(?!\w+:)([^"]*)"', shown(site, path))
    assert len(links) == len([link for link in written_links(path) if "://" not in link])
    for link in links:
        file, _, part = link.partition("#")
        target = site / (file or f"{ON_SITE[path]}.html")
        assert target.exists(), link
        assert not part or f'id="{part}"' in target.read_text("utf-8"), link


def named_as_on_github(page: Path) -> set[str]:
    """What a heading is called in a link."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(leaves(navigation)) == sorted(f"{page}.md" for page in ON_SITE.values())
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

"""Tests of README and the pages: what they say runs, exists and is in them."""

from __future__ import annotations

import contextlib
import functools
import html
import http.server
import os
import re
import shlex
import signal
import socket
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
from streamtrain.compute import losses, optimizers
from streamtrain.compute.metrics import CONSTANT
from streamtrain.compute.model import Model
from streamtrain.compute.options import Option
from streamtrain.fitting.minimizers import MINIMIZERS
from streamtrain.job import Job, settings_table
from tests.ui.conftest import browser

ROOT = Path(__file__).resolve().parents[2]
PORT = "9092"  # the pages'; a run takes one that is free
HTTP_PORT = "8080"  # the same of a server that a page starts
METRICS_PORT = "9400"  # the same of a trainer's metrics
STEP_S = 240
Block = tuple[str, str]  # kind, text


def blocks(page: Path) -> list[Block]:
    """The fenced blocks in order."""
    found: list[Block] = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return found


def spans(page: Path) -> list[str]:
    """Returns the texts in single backquotes in a page's prose and tables."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: list[str] = re.findall(r"`([^`\n]+)`", prose)
    return found


def free_port(*beside: int) -> int:
    """Another than those. Below the ephemeral range, where no connection of ours can hold it."""
    for port in range(20_000 + os.getpid() % 5_000, 32_000):
        with socket.socket() as listener:
            if port in beside:
                continue
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


class Shell:
    """Runs blocks in one folder, with the pages' Kafka at `port`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("STREAMTRAIN_")},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "XDG_DATA_HOME": str(folder / "data"),
        }
        self.environment.pop("KAFKA_HOME", None)
        self._port = port
        self._http_port = str(free_port(port))
        self._metrics_port = str(free_port(port, int(self._http_port)))
        self._printed: list[str] = []

    def run(self, kind: str, text: str) -> str:
        """Runs one block, which must end well; gives what it printed."""
        text = text.replace(f"localhost:{PORT}", f"localhost:{self._port}")
        text = text.replace("broker start ", f"broker start --port {self._port} ")
        text = re.sub(rf"(localhost:|--port ){HTTP_PORT}\b", rf"\g<1>{self._http_port}", text)
        text = re.sub(rf"(127.0.0.1:|--metrics-port ){METRICS_PORT}\b", rf"\g<1>{self._metrics_port}", text)
        command = [sys.executable, "-c", text] if kind == "python" else ["bash", "-euo", "pipefail", "-c", text]
        ended = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=STEP_S, check=False
        )
        self._printed.append(f"{text}\n{ended.stdout}\n{ended.stderr}")
        assert ended.returncode == 0, "\n".join([*self._printed, f"ended with {ended.returncode}"])
        return ended.stdout

    def end(self) -> None:
        """Ends what a page has left running, whose numbers stand in files of the folder."""
        for path in self.folder.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)


ALL_PAGES = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [page for page in ALL_PAGES if page.parent.name != "reference"]  # those are generated
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
            assert kind in ("sh", "python", "toml", "yaml", "text"), kind
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


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ALL_PAGES],
    ids=lambda page: str(page.relative_to(ROOT).with_suffix("")),
)
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
    names = [str(page.relative_to(ROOT)) for page in ALL_PAGES]
    assert [name for name in names if f"({name})" not in text] == []
    assert len(list(commands(ROOT / "README.md"))) > 20


MODEL, FIT = ROOT / "docs" / "model.md", ROOT / "docs" / "fit.md"
SPAN = re.compile(r"`([^`]+)`(?: \(((?:`[^`]+`(?:, )?)+)\))?")  # an entry, and its settings in parentheses
Settings = dict[str, Any]  # with the default that is told, or ...


def tables(page: Path) -> Iterator[list[list[str]]]:
    """Yields the cells of each table of a page, row by row, the head first."""
    for table in re.findall(r"(?:^\|.*\|\n)+", page.read_text("utf-8"), re.MULTILINE):
        head, _, *rows = table.splitlines()
        yield [[cell.strip() for cell in line.strip("|").split(" | ")] for line in (head, *rows)]


def table(page: Path, first: str) -> list[dict[str, str]]:
    """The rows of the table whose first column is called that, by column."""
    (found,) = [cells for cells in tables(page) if cells[0][0].strip() == first]
    return [dict(zip(found[0], row, strict=True)) for row in found[1:]]


def read_settings(page: Path, first: str) -> dict[str, Settings]:
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


def test_the_table_of_window_optimizers() -> None:
    check(read_settings(FIT, "`optimizer=`"), {name: each.own for name, each in MINIMIZERS.items()})


def test_figures() -> None:
    """All that models of any loss are measured by: of few classes other ones than of many."""
    known = set[str]()
    for loss in losses.names():
        for classes in (3, 101) if losses.label_kind(loss) == "class" else (None,):
            label = {"role": "label"} | ({} if classes is None else {"classes": classes})
            job = Job.from_tables({"columns": {"x": {}, "y": label}, "model": {"loss": loss}})
            known |= set(Model(job.model_spec()).figures)
    assert sorted(read_settings(MODEL, "figure")) == sorted(name for name in known if not name.startswith(CONSTANT))
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

FRONT = {
    "README.md": "index", "examples/README.md": "examples", "CHANGELOG.md": "changes",
    "CONTRIBUTING.md": "contributing",
}  # fmt: skip
IN_DOCS = [page.relative_to(ROOT / "docs") for page in ALL_PAGES]
ON_SITE = {**FRONT, **{f"docs/{page}": str(page.with_suffix("")) for page in IN_DOCS}}
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


def read_article(site: Path, path: str) -> str:
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
    assert structure(read_article(site, path)) == structure(VIEWER.render((ROOT / path).read_text("utf-8")))


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
    links = re.findall(r'<a href="(?!\w+:)([^"]*)"', read_article(site, path))
    assert len(links) == len([link for link in written_links(path) if "://" not in link])
    for link in links:
        file, _, part = link.partition("#")
        here = site / f"{ON_SITE[path]}.html"
        target = (here.parent / file).resolve() if file else here
        assert target.exists(), link
        assert not part or f'id="{part}"' in target.read_text("utf-8"), link


def named_as_on_github(page: Path) -> set[str]:
    """Returns the names by which links refer to a page's headings."""
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
        for page in ("index", "operate", "model", "reference/settings", "reference/python"):
            browser.get(f"{address}/{page}.html")
            assert browser.execute_script("return document.scrollingElement.scrollWidth") <= width
            elsewhere = (
                "performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin))"
            )
            assert browser.execute_script(f"return {elsewhere}") == []
        grounds.add(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


README, SETTINGS = ROOT / "README.md", ROOT / "docs" / "settings.md"
METRICS = ROOT / "docs" / "reference" / "metrics.md"
BLOCKS = blocks(README)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    port = free_port()
    session = Shell(tmp_path, port)
    yield session
    assert f"localhost:{port}" in (tmp_path / "flights.toml").read_text(), "another Kafka than the test's own"
    subprocess.run(["streamtrain", "broker", "stop"], env=session.environment, check=True, timeout=STEP_S)


def test_the_set_up_is_the_only_block_that_is_not_run_here() -> None:
    assert {kind for kind, _ in BLOCKS} == {"", "sh", "python", "toml", "text"}
    (setup,) = [text for kind, text in BLOCKS if kind == ""]
    assert all(line.startswith("python -m venv .venv && ") for line in setup.splitlines())
    (picture,) = [text for kind, text in BLOCKS if kind == "text"]
    assert "ingest" in picture


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.timeout(900)
def test_every_block_runs(shell: Shell) -> None:
    printed = "".join(shell.run(kind, text) for kind, text in BLOCKS if kind in ("sh", "python"))
    assert re.search(r"rows +10,243", printed), printed  # what was produced has been learned
    assert "{'prediction': 0." in printed
    assert "every check passed" in printed and "came out bit for bit" in printed


def test_a_job_file_is_one() -> None:
    for page, columns in ((README, ["dep_delay", "carrier"]), (SETTINGS, ["C1", "C2", "C3"])):
        (text,) = [text for kind, text in blocks(page) if kind == "toml"]
        assert {*columns} <= {name for name, _ in Job.parse(text).schema.columns}, page


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_every_setting_and_metric_named_exists(page: Path) -> None:
    settings = {setting.path for setting in settings_table()}
    sections = "records|model|optimizer|train|publish|predict"
    known = settings | {path.rpartition(".")[0] for path in settings} | {"model.py"}
    for span in spans(page):
        if match := re.fullmatch(rf"(({sections})\.[a-z_.]+)( = .*)?", span):
            assert match[1] in known, span
        if match := re.match(r"streamtrain_(\w+)", span):
            assert f"`{match[0]}`" in METRICS.read_text("utf-8"), span

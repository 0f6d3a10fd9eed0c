"""Fixtures for every test: a real Kafka for the run, Kafkas of its own to break; and the rules of the markers."""

from __future__ import annotations

import fcntl
import gc
import hashlib
import importlib.util
import logging
import os
import shutil
import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

import long_tables
import pytest
from confluent_kafka.admin import AdminClient
from guarded_kafka import GuardedKafka
from one_for_all import one_for_all
from tests_kafka import kafka_home, running_kafka
from tests_registry import running_registry

from streamtrain.broker import Broker, start_broker
from streamtrain.compute.backends import _cublas
from streamtrain.kafka.admin import Admin
from streamtrain.topics.topic import TopicWish

_starts = pytest.StashKey[Counter[str]]()
PROCESSES = 6  # on two cores; most tests wait for Kafka
MAX_STARTS = 120  # of commands and brokers in the default run; each is up to a second of two cores


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Runs a whole selection in several processes: file by file, slow tests one by one. With a named path, -k, -x or
    --pdb it stays in this process.
    """
    option = config.option
    if hasattr(config, "workerinput"):  # one of those processes
        return
    named = config.args_source is config.ArgsSource.ARGS or option.keyword or option.maxfail or option.usepdb
    if not named and not option.collectonly and getattr(option, "numprocesses", 0) is None:
        waits = "not kafka" not in option.markexpr  # else few do: one process more than cores is enough
        option.numprocesses = PROCESSES if waits else min(PROCESSES, (os.cpu_count() or PROCESSES) + 1)
        option.dist, option.loadscopereorder = "loadfile", False
        if "full" in option.markexpr:
            option.dist, option.maxschedchunk = "load", 1


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are found
    long_tables.set_step(config.option.every)
    config.stash[_starts] = Counter()
    sys.addaudithook(partial(_count_start, config.stash[_starts]))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", help="with -m full: part K of N of the tests, as K/N, K from 0")
    parser.addoption("--every", type=int, default=long_tables.EVERY, help="take each Nth entry of long tables; 1: all")
    parser.addoption("--chaos-seeds", default="1", help="with -m full tests/chaos: one seed, or from-to")
    parser.addoption("--chaos-stalls", default="5", help="with -m full tests/chaos: number of broker stalls")
    parser.addoption("--load-seconds", type=int, default=60, help="with -m full: how long `serve` is under load")


ROOT = Path(__file__).resolve().parents[1]
SOURCES = {".py", ".h", ".cpp", ".cmake", ".txt", ".toml"}
# fixtures that mark their tests `kafka`
NEED_KAFKA = {"guarded", "kafka", "private_kafka", "modules_kafka", "registry"}


@dataclass(frozen=True)
class SharedKafka:
    """One Kafka for the whole run; tests stay apart by the names they use."""

    bootstrap: str
    names: list[str] = field(default_factory=list)  # given out since drop_topics()

    def fresh_name(self, prefix: str) -> str:
        """A job or topic name nobody else uses."""
        self.names.append(f"{prefix}-{uuid.uuid4().hex[:10]}")
        return self.names[-1]

    def new_topic(self, prefix: str, partitions: int) -> str:
        """A topic of which a broker answers for each partition, which it may not do as soon as it is made."""
        name = self.fresh_name(prefix)
        Admin(self.bootstrap, timeout_s=60).ensure([TopicWish("records", name, partitions)])
        return name

    def drop_topics(self) -> None:
        """Deletes the topics whose names begin with a name given out: each costs Kafka time as long as it is there."""
        if self.names:
            admin, names = AdminClient({"bootstrap.servers": self.bootstrap}), tuple(self.names)
            self.names.clear()
            if found := [topic for topic in admin.list_topics(timeout=60).topics if topic.startswith(names)]:
                wait(admin.delete_topics(found).values())


_shared: list[SharedKafka] = []  # of this process


@dataclass(frozen=True)
class SharedRegistry:
    """One schema registry for the whole run; tests stay apart by the subjects they use."""

    url: str


@pytest.fixture(autouse=True)
def log_levels() -> Iterator[None]:
    """Restores the levels that a command in this process may have set: the next test reads its own log."""
    loggers = logging.getLogger(), logging.getLogger("streamtrain")
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="session")
def folder_of_all(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all of xdist's workers."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own


@pytest.fixture(scope="session")
def kafka(folder_of_all: Path) -> Iterator[SharedKafka]:
    """A real Kafka: one that is named, else the embedded one, see fakes/tests_kafka.py."""
    with one_for_all(folder_of_all, "kafka", running_kafka) as bootstrap:
        _shared.append(SharedKafka(bootstrap))
        yield _shared[-1]


@pytest.fixture(scope="module", autouse=True)
def _topics_of_a_file() -> Iterator[None]:
    yield
    for kafka in _shared:
        kafka.drop_topics()


@pytest.fixture(scope="session")
def registry(folder_of_all: Path) -> Iterator[SharedRegistry]:
    """A real schema registry, empty at first."""
    with one_for_all(folder_of_all, "registry", running_registry) as url:
        yield SharedRegistry(url)


@contextmanager
def _kafkas() -> Iterator[Callable[..., Broker]]:
    started: list[Broker] = []

    def start(**settings: object) -> Broker:
        started.append(start_broker(kafka_home=kafka_home(), **{"fast_start": True, **settings}))  # type: ignore[arg-type]
        return started[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LD_PRELOAD", raising=False)  # tests/native: a JVM does not run under the sanitizers
        yield start
    for broker in started:
        broker.kill()
        broker.stop()


@pytest.fixture
def private_kafka() -> Iterator[Callable[..., Broker]]:
    """Call it with start_broker's keywords for a Kafka to kill and restart."""
    with _kafkas() as start:
        yield start


@pytest.fixture(scope="module")
def modules_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka to kill and restart, for all tests of a file; each test leaves it running."""
    with _kafkas() as start:
        yield start(data=tmp_path_factory.mktemp("own") / "kafka")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    """A Kafka with authentication and rights, for all tests of a file."""
    with _kafkas() as start:
        yield GuardedKafka(start, tmp_path_factory.mktemp("guarded"))


@pytest.fixture(scope="session")
def librdkafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real one, of which chosen calls fail: see fakes/failing_librdkafka.py."""
    from failing_librdkafka import built

    return built(tmp_path_factory.mktemp("librdkafka"))


@pytest.fixture(scope="session")
def kept_build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A folder that `make(folder)` has filled once for these sources, folders or files; kept from run to run."""

    cache = getattr(request.config, "cache", None)  # not with -p no:cacheprovider
    kept = cache.mkdir("builds") if cache is not None else tmp_path_factory.mktemp("builds")

    def build(name: str, sources: Sequence[str], make: Callable[[Path], None]) -> Path:
        digest = hashlib.sha256()
        found = {path for source in sources for path in [ROOT / source, *(ROOT / source).rglob("*.*")]}
        for path in sorted(path for path in found if path.is_file()):
            if path.suffix in SOURCES:
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
        folder = kept / f"{name}.{digest.hexdigest()[:16]}"
        with (kept / f".{name}").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of xdist's workers one builds
            if not folder.exists():
                for old in kept.glob(f"{name}.*"):
                    shutil.rmtree(old, ignore_errors=True)
                growing = kept / f"{name}.{os.getpid()}"
                growing.mkdir()
                make(growing)
                growing.rename(folder)
        return folder

    return build


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of Kafka's administration give up after one second, not eight."""
    monkeypatch.setattr(Admin.__init__, "__defaults__", (None, 1.0))


@pytest.fixture
def fake_cupy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A fresh tests/fakes/fake_cupy.py in CuPy's place, and its cuBLAS."""
    found = importlib.util.spec_from_file_location("cupy", Path(__file__).parent / "fakes" / "fake_cupy.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(_cublas, "library", module.FakeCublas)
    return module


def _count_start(starts: Counter[str], event: str, arguments: tuple[Any, ...]) -> None:
    """Counts commands and brokers as they start, in tests and in the process that forks commands for them."""
    if event == "streamtrain.tests.command":
        starts[arguments[0]] += 1
    elif event == "subprocess.Popen":
        command = arguments[1]
        program, *rest = [command] if isinstance(command, str | bytes) else map(os.fspath, command)
        if Path(program).name == "streamtrain":
            starts[rest[0] if rest else "streamtrain"] += 1
        elif "kafka.Kafka" in rest:
            starts["Kafka"] += 1


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Sends a worker process's starts to the controller, which fails a run with too many of them."""
    starts = session.config.stash[_starts]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["starts"] = dict(starts)
    elif _too_many(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _too_many(config: pytest.Config) -> bool:
    return "full" not in config.option.markexpr and config.stash[_starts].total() > MAX_STARTS


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[_starts].update(getattr(node, "workeroutput", {}).get("starts", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Shows how many commands and brokers were started; with --durations also how long files and folders took."""
    starts = config.stash[_starts]
    terminalreporter.write_line(
        f"{starts.total()} commands and brokers started: {dict(starts.most_common())}; expected at most {MAX_STARTS}",
        red=_too_many(config),
    )
    if not (count := config.option.durations):
        return
    taken: dict[str, float] = defaultdict(float)
    for report in (report for several in terminalreporter.stats.values() for report in several):
        if not isinstance(report, pytest.TestReport):
            continue
        for path in (report.location[0], str(Path(report.location[0]).parent) + "/"):
            taken[path] += report.duration
    terminalreporter.section(f"slowest {count} files and folders")
    for path, seconds in sorted(taken.items(), key=lambda each: -each[1])[:count]:
        terminalreporter.write_line(f"{seconds:7.1f}s {path}")


def missing_gpu() -> str | None:
    """Returns the reason why no GPU test can run here, None if one can."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed (extra cuda12 or cuda13)"
    try:
        return None if cupy.cuda.runtime.getDeviceCount() else "no NVIDIA GPU"
    except Exception as error:  # CuPy raises its own kinds when there is no driver
        return f"no NVIDIA GPU: {error}"


def _in_shard(item: pytest.Item, shard: str | None) -> bool:
    if shard is None:
        return True
    part, parts = map(int, shard.split("/"))
    path, _, name = item.location
    return crc32(f"{path}::{name}".encode()) % parts == part


SELECTED_BY_NAME = ("full", "gpu", "mutants")  # markers whose tests run only if -m names one of them


def _order(items: list[pytest.Item]) -> None:
    """Tests that build come first. Files that wait for Kafka, those of many tests first, lie evenly among files that
    keep a core busy, so that processes wait beside others that compute, and the last files are short."""
    files: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.location[0]].append(item)
    waits = {name: any(map(NEED_KAFKA.intersection, map(_fixtures, of))) for name, of in files.items()}
    place: dict[str, float] = {}
    for kind in (True, False):
        names = sorted((name for name in files if waits[name] == kind), key=lambda name: -len(files[name]))
        place.update((name, at / len(names)) for at, name in enumerate(names))
    items.sort(key=lambda item: ("kept_build" not in _fixtures(item), place[item.location[0]], item.location[0]))


def _fixtures(item: pytest.Item) -> Sequence[str]:
    return getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what `-m` did not select; skips GPU tests, with the reason, where there is no GPU."""
    for item in items:
        if NEED_KAFKA.intersection(_fixtures(item)):
            item.add_marker(pytest.mark.kafka)
    unwanted = [name for name in SELECTED_BY_NAME if name not in config.option.markexpr]
    left_out = {item for item in items if any(map(item.get_closest_marker, unwanted))}
    left_out |= {item for item in items if not _in_shard(item, config.option.shard)}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]
    _order(items)
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and (reason := missing_gpu()):
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Keeps the garbage collector from walking over the collected tests, which stay until the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # by Python's own 700 it takes one second of thirty
    gc.enable()

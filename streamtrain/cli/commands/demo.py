"""See it work: Kafka, a year of flights streaming in, a model that learns them, live."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.live import Live

from streamtrain import _native, exits
from streamtrain.background import in_background
from streamtrain.broker import Broker, find_broker, start_broker
from streamtrain.broker.data_folder import port_free
from streamtrain.checks.verify import verify
from streamtrain.cli.console import console
from streamtrain.cli.demo_screen import plain, screen, show_summary
from streamtrain.cli.session import Session, command, finite
from streamtrain.cli.stopping import StoppedAtOnce, StopSignals
from streamtrain.clients.status import JobStatus
from streamtrain.demo import folder
from streamtrain.demo.flights import data_file, load_flights
from streamtrain.demo.folder import JOB_FILE, KAFKA, Child
from streamtrain.demo.traffic import Document, Traffic
from streamtrain.errors import KafkaUnreachable, SnapshotError, StreamtrainError, UserMistake
from streamtrain.interruption import uninterrupted
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.log import configure_logging
from streamtrain.ui.page_server import nicegui

ORDER = 10
RATE = 5_600.0  # rows a second: the year in a minute
ANYWHERE = "localhost:9092"  # in a job that is only checked
PORTS = (9000, *range(9400, 9500))  # of the page and metrics: below those of outgoing connections
LOOK_S, JSON_S, PLAIN_S = 0.25, 1.0, 5.0  # between two looks at the job, JSON lines, plain lines
ANSWERS_S, DRAIN_S = 30.0, 60.0  # for the last answers, and the last publication
VERSIONS_BACK = 3  # of the replay that the summary proposes
T = TypeVar("T")
app = typer.Typer(add_completion=False)


@app.command()
@command
def demo(
    session: Session,
    rate: Annotated[
        float,
        typer.Option(
            min=0, callback=finite, help="Flights per second; the default is a year in a minute; 0: as fast as it goes."
        ),
    ] = RATE,
    rows: Annotated[int | None, typer.Option(min=1, help="Only the first so many flights.", show_default=False)] = None,
    workers: Annotated[int, typer.Option(min=1, max=_native.MAX_WORKERS, help="Worker processes.")] = 2,
    ui: Annotated[bool, typer.Option("--ui", help="A page beside it, until Ctrl-C; needs the extra `ui`.")] = False,
) -> None:
    """Learn from 336,776 flights as they stream in whether the next ones will be late; shows it live, checks it after.

    Starts a Kafka of its own in ./streamtrain-demo and ends it; leaves its data and the job file there. Exit code 1
    where a check does not hold. Ctrl-C stops it at any time.
    """
    if session.logging["level"] != "debug":
        configure_logging("error", session.logging["format"])  # the screen shows the rest
    if ui:
        nicegui()  # what is missing is reported before anything is started
    with StopSignals() as stop:
        run = Demo(session, workers, stop)
        try:
            ok = run.run(rows, rate, ui)
        except KeyboardInterrupt:
            if not session.as_json:
                print("stopped; everything it started has ended", file=sys.stderr)
            raise StoppedAtOnce if run.is_sending else typer.Exit(exits.INTERRUPTED) from None
        except StreamtrainError as error:
            if run.is_sending:
                raise StoppedAtOnce(error) from None
            raise
    raise typer.Exit(0 if ok else 1)


class Demo:
    """A run of the demo, which ends all it starts."""

    def __init__(self, session: Session, workers: int, stop: StopSignals) -> None:
        self._session, self._out, self._workers, self._stop = session, session.out, workers, stop
        self._opened = ExitStack()
        self._broker: Broker | None = None
        self._children: dict[str, Child] = {}
        self._sending: list[Future[None]] = []  # threads of the traffic
        self._next_line_s = 0.0
        other = "\0" if session.bootstrap else "STREAMTRAIN_KAFKA__"  # settings of another Kafka than its own
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith(other)}

    @property
    def is_sending(self) -> bool:
        """Returns whether a thread of the traffic still waits for Kafka."""
        return not all(thread.done() for thread in self._sending)

    def run(self, rows: int | None, rate: float, ui: bool) -> bool:
        """Returns whether every check holds, every row is accounted for and every request is answered.

        Raises KeyboardInterrupt for a signal. At a first one what is open is finished first.
        """
        began_s = time.monotonic()
        with self._opened:
            traffic, page = self._unless_stopped(lambda: self._begin(rows, rate, ui))
            self._stream(traffic)
            self._say("verifying", "checking the guarantees on the topics")
            summary = self._unless_stopped(lambda: self._summary(traffic, began_s))
            if self._out.as_json:
                self._out.line({"event": "summary", **summary})
            else:
                show_summary(console(), summary, traffic.streamed_s)
            if ui:
                self._say("staying", f"Kafka and {page} stay until Ctrl-C", url=page)
                while not self._stop.is_set():
                    self._check()
                    self._stop.wait_for(lambda: time.sleep(LOOK_S))
        return bool(summary["ok"])

    def _unless_stopped(self, function: Callable[[], T]) -> T:
        """Returns what the function returns. Raises KeyboardInterrupt where a signal has come or comes meanwhile."""
        result = self._stop.wait_for(function)
        if result is None or self._stop.is_set():
            raise KeyboardInterrupt
        return result

    def _begin(self, rows: int | None, rate: float, ui: bool) -> tuple[Traffic, str]:
        """Starts everything; returns what is to be sent, and the page's address."""
        data_file()  # what is missing or mistaken is reported before anything is started
        self._job(folder.JOB_NAME, self._session.bootstrap or ANYWHERE)
        folder.make_folder()
        loading = in_background(load_flights, rows, name="loading")
        job = self._fresh_job(self._session.bootstrap or self._own_kafka())
        traffic, workers = Traffic(job, loading.result(), rate), job.train.workers
        text = f"{traffic.rows:,} flights out of New York in 2013, {workers} worker process{'es' * (workers > 1)}"
        self._say("job", f"job {job.name}: {text}", job=job.name, rows=traffic.rows, workers=workers)
        return traffic, self._start(job, ui)

    def _say(self, event: str, text: str, **fields: Any) -> None:
        if self._out.as_json or not self._out.quiet:
            self._out.line({"event": event, **fields}, text)

    def _job(self, name: str, bootstrap: str) -> Job:
        """Returns the demo's job under that name. Raises JobMistakes for what --set or the environment say."""
        text = folder.job_text(name, bootstrap, self._workers)
        return Job.parse(text, environment=self._environment, sets=self._session.sets, bootstrap=bootstrap)

    def _own_kafka(self) -> str:
        began_s, broker = time.monotonic(), find_broker(KAFKA)
        if broker is None:
            self._say("starting", f"starting Kafka, its data in {KAFKA}")
            home = os.environ.get("KAFKA_HOME")
            broker = start_broker(KAFKA, kafka_home=Path(home) if home else None, fast_start=True)
        at = broker.bootstrap
        if broker.found:
            raise UserMistake(
                f"{KAFKA}: expected that no Kafka runs here, got one at {at} that this demo did not start; stop it "
                f"with `{program()} broker stop --data {KAFKA}`, or use it with `{program()} demo -b {at}`"
            )
        self._broker, seconds = self._opened.enter_context(broker), time.monotonic() - began_s
        self._say("kafka", f"Kafka runs at {at}, up in {seconds:.1f} s", bootstrap=at, seconds=round(seconds, 2))
        return at

    def _fresh_job(self, bootstrap: str) -> Job:
        """Returns the job of this run, with its file and its topics; reports what earlier runs left."""
        job = self._job(folder.JOB_NAME, bootstrap)
        admin = Admin(bootstrap, job.kafka_admin())
        if earlier := folder.jobs_in(admin.names()):
            found, job = described(self._job(earlier[-1], bootstrap)), self._job(folder.fresh_name(earlier), bootstrap)
            text = f"found job {found} of an earlier run; starting over as {job.name}"
            self._say("found", text, jobs=earlier, job=job.name)
        folder.write_job(folder.job_text(job.name, bootstrap, self._workers))
        admin.ensure(job.topic_wishes())
        return job

    def _start(self, job: Job, ui: bool) -> str:
        """Starts the trainer, the predictor and, with `ui`, the page, whose address it returns when it is up."""
        sets = [flag for each in self._session.sets for flag in ("--set", each)]
        flags: dict[str, list[str]] = {"train": [], "predict": []}
        page, *metrics = [port for port in PORTS if ui and port_free(port)][:3] or [0]
        for name, port in zip([*flags], metrics, strict=False):
            flags[name] = ["--metrics-port", str(port)]
            flags.setdefault("ui", ["--port", str(page)]).extend(["--metrics", f"http://127.0.0.1:{port}"])
        for name, own in flags.items():
            call = [name, str(JOB_FILE), "--bootstrap", job.kafka.bootstrap, *sets, *own]
            with uninterrupted():
                self._children[name] = child = Child(call, self._environment)
                self._opened.callback(child.process.kill)
        while ui and port_free(page):
            self._check()
            time.sleep(LOOK_S)
        url = f"http://127.0.0.1:{page}/"
        if ui:
            self._say("ui", f"look at {url}", url=url)
        return url

    def _check(self) -> None:
        for child in self._children.values():
            child.check()
        if self._broker is not None and not self._broker.pids:
            at, data = self._broker.bootstrap, self._broker.data
            raise KafkaUnreachable(f"the demo's Kafka at {at} has ended; its log lies in {data}")

    def _stream(self, traffic: Traffic) -> None:
        """Ends when all flights are in a snapshot, all requests answered, and the trainer and the predictor have ended.

        A first signal lets the open round be published before it raises KeyboardInterrupt.
        """
        self._sending = [in_background(call, name=call.__name__) for call in (traffic.send, traffic.read)]
        self._opened.push(partial(self._end_traffic, traffic))
        is_live = console().is_terminal and not self._out.as_json and not self._out.quiet
        live = Live(console=console(), auto_refresh=False, transient=True) if is_live else None
        with JobStatus(traffic.job) as job_status, live or nullcontext():
            for status in self._stop.each(job_status.watch(LOOK_S)):
                self._show(traffic.see(status), live)
                self._check()
                for thread in self._sending:
                    if thread.done():
                        thread.result()
                if self._sending[0].done() and traffic.is_answered(ANSWERS_S):
                    break
            traffic.stopping.set()
            ending = [child for name, child in self._children.items() if name != "ui"]
            for child in ending:
                child.process.terminate()
            for child in ending:
                child.process.wait(DRAIN_S)
            if self._stop.is_set():
                raise KeyboardInterrupt
            for child in ending:
                child.check(expected=0)
            self._children = {name: child for name, child in self._children.items() if name == "ui"}
            self._next_line_s = 0.0
            self._show(traffic.see(job_status.look()), live)

    def _end_traffic(self, traffic: Traffic, kind: object, error: object, trace: object) -> None:
        """Waits for the traffic's threads while there is a Kafka that takes what they have."""
        traffic.stopping.set()
        if not isinstance(error, KafkaUnreachable):
            wait(self._sending, DRAIN_S)

    def _show(self, traffic: Traffic, live: Live | None) -> None:
        if live is not None:
            live.update(screen(traffic), refresh=True)
        elif traffic.seconds >= self._next_line_s and (self._out.as_json or not self._out.quiet):
            self._next_line_s = traffic.seconds + (JSON_S if self._out.as_json else PLAIN_S)
            figures = traffic.to_dict()
            self._out.line({"event": "progress", **figures}, plain(figures))

    def _summary(self, traffic: Traffic, began_s: float) -> Document:
        verified_s, figures, first_s = time.monotonic(), traffic.to_dict(), traffic.first_trained_s
        report = verify(traffic.job, fast=True)
        ended_s, counted = time.monotonic(), report.rows_trained + report.rows_dead + report.rows_filtered
        kafka = (f"broker start --data {KAFKA}", "Kafka again, with all of this in it")
        following = [
            (f"status {JOB_FILE}", "the job as its topics show it") if self._broker is None else kafka,
            (f"read {JOB_FILE} dead-letters --until-end", "the damaged flights, each with its reason"),
            (f"replay {JOB_FILE} --from {max(1, figures['version'] - VERSIONS_BACK)}",
             "compute the last snapshots again from the records: the same bits"),
        ]  # fmt: skip
        return {
            "job": traffic.job.name,
            "ok": report.ok and counted == traffic.sent and traffic.answers == traffic.requests,
            "seconds": round(ended_s - began_s, 2), "first_trained_s": first_s and first_s - began_s,
            "rows": {"produced": traffic.sent, **report.as_dict()["rows"]},
            "dead_letters": figures["dead_letters"], "quality": figures["total"], "snapshots": figures["version"],
            "predictions": {"requests": traffic.requests, "answers": traffic.answers, "errors": traffic.errors,
                            "delay_p50_s": traffic.delay_s(50), "delay_p99_s": traffic.delay_s(99)},
            "verify": report.as_dict(), "verify_seconds": round(ended_s - verified_s, 2),
            "folder": str(JOB_FILE.parent), "job_file": str(JOB_FILE),
            "next": [{"command": f"{program()} {words}", "text": text} for words, text in following],
        }  # fmt: skip


def described(job: Job) -> str:
    """Returns an earlier job in half a line."""
    snapshot = None
    with suppress(SnapshotError), JobStatus(job) as job_status:
        status = job_status.look()
        snapshot = status["snapshot"]
    if snapshot is None:
        return f"{job.name}, without a whole snapshot,"
    loss = status["metrics"].get("total", {}).get("log_loss")
    quality = "" if loss is None else f", log loss {loss:.4f}"
    return f"{job.name} (snapshot {snapshot['version']}, {snapshot['rows_seen']:,} rows{quality})"


def program() -> str:
    """Returns what to type for this very streamtrain: its name if the PATH finds it, else its path."""
    here, found = Path(sys.argv[0]), shutil.which("streamtrain")
    is_found = found is not None and Path(found).resolve() == here.resolve()
    return "streamtrain" if is_found or here.name != "streamtrain" else shlex.quote(sys.argv[0])

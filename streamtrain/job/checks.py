"""The checks that span settings: the ring and the round, columns and the loss, topics among each other, the snapshot
rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from streamtrain.columns import formats
from streamtrain.columns.names import expand
from streamtrain.columns.schema import Schema
from streamtrain.compute import averagings, graph, heads, layers, losses, optimizers, schedules
from streamtrain.compute.model import Model
from streamtrain.compute.options import NOTHING, Problem, problems
from streamtrain.errors import UserMistake
from streamtrain.job.affinity import core_lists
from streamtrain.job.file import JobFile, column_mistakes
from streamtrain.job.job_model import engine_spec, graph_of, schema_of
from streamtrain.job.mistakes import Mistake, show_path, show_value
from streamtrain.job.named_network import beside_mistakes
from streamtrain.job.sections import MOST_ROWS, Records
from streamtrain.job.setting_sources import Gathered
from streamtrain.registry import nearest
from streamtrain.topics.topic import all_topics, topics_of

SNAPSHOT_BYTES_PER_S = 100_000_000  # above it a job is warned: a follower and the broker's disk must keep up
MANY_HOSTS_STATE_BYTES = 500_000_000  # every host sends as much to Kafka in each sync
_ONE_HOST = 'or train on one machine: hosts = "one"'


def check_together(file: JobFile, gathered: Gathered, wrong: set[str]) -> list[Mistake]:
    """Mistakes and warnings of values that are each right by themselves; none of sections that are `wrong` already."""
    found: list[Mistake] = []
    if not wrong & {"train"}:
        found += _ring(file, gathered)
        found += _averaging(file, gathered)
        found += _hosts(file, gathered)
        found += _affinity(file, gathered)
    schema: Schema | None = None
    if not wrong & {"columns", "transforms", "model", "records"}:
        try:
            schema = schema_of(file)
        except UserMistake as error:
            found += _columns(error, file, gathered)
    if schema is not None and not found:
        found += _loss(file, schema, gathered)
    if not wrong & {"model"}:
        found += beside_mistakes(file, gathered)
        found += _layers(file, gathered)
    if schema is not None and not found:
        found += _graph(file, schema, gathered)
        found += _heads(file, schema, gathered) if not found else []
    if not wrong & {"records"}:
        found += _format(file, gathered)
    if schema is not None and not found:
        found += _given_columns(file, schema, gathered)
    if not wrong & {"optimizer"}:
        found += _optimizer(file, gathered)
        found += _schedule(file, gathered)
    if not wrong & {"topics", "name"}:
        found += _topics(file, gathered)
    if schema is not None and not wrong and not found:
        found += _model(file, schema, gathered)
    return found


def _ring(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    train = file.train
    steps = train.averaging_frequency or 1
    least = 2 * train.workers * steps
    if train.prefetch_buffer is not None and train.prefetch_buffer < least:
        expected = f"at least two rounds: 2 x {train.workers} workers x {steps} steps = {least} slots"
        yield _mistake(gathered, ("train", "prefetch_buffer"), expected, train.prefetch_buffer)
    if train.min_batch_rows is not None and train.min_batch_rows > train.update_rows:
        expected = f"at most {train.update_rows:,}, the rows of a full-grown batch"
        yield _mistake(gathered, ("train", "min_batch_rows"), expected, train.min_batch_rows)
    if train.update_rows > MOST_ROWS:
        expected = f"at most {MOST_ROWS:,} rows an update: accumulate x {train.batch_rows:,} of batch_rows"
        yield _mistake(gathered, ("train", "accumulate"), expected, train.accumulate)


def _averaging(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    averaging = file.train.averaging
    for problem in averagings.wrong(averaging.name, averaging.model_extra or {}):
        with_name = replace(problem, near=("name", *problem.near)) if problem.unknown else problem
        yield _of_problem(gathered, ("train", "averaging"), with_name)


def _hosts(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    """Yields the settings that many hosts cannot have together."""
    train = file.train
    if train.hosts == "one":
        return
    wrong = {
        "average_optimizer_state": (not train.average_optimizer_state, "true: hosts exchange one state"),
        "early_stopping": (train.early_stopping is not None, "no early stopping: no host sees all scores"),
        "report_score_after_averaging": (train.report_score_after_averaging, "false: no host has the mean and a batch"),
    }
    for name, (is_wrong, expected) in wrong.items():
        if is_wrong:
            got = _Words("a table") if name == "early_stopping" else getattr(train, name)
            yield _mistake(gathered, ("train", name), f'{expected}, with hosts = "many"; {_ONE_HOST}', got)


def _affinity(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    """Checks that each worker has its list of cores, if there are lists. A start finds out whether the cores are
    there: a job file is read on other machines too."""
    lists = core_lists(file.train.affinity)
    if lists and len(lists) != file.train.workers:
        expected = f"a list for each of {file.train.workers} workers, with ; between them"
        yield _mistake(gathered, ("train", "affinity"), expected, _Words(f"{len(lists)} in {file.train.affinity}"))


class _Words(str):
    """A text for what was found, in words and not as a value of the file."""


def _mistake(gathered: Gathered, path: tuple[str | int, ...], expected: str, got: Any, **more: Any) -> Mistake:
    text = got if isinstance(got, _Words) else show_value(got)
    return Mistake(gathered.where(path), show_path(path), expected, text, **more)


def _columns(error: UserMistake, file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    """Yields what the schema finds wrong, at the line of the column, or of the pattern that stands for it."""
    for line in str(error).splitlines():
        head, _, problem = line.partition(": ")
        section, _, name = head.partition(".")
        if section == "heads":
            yield Mistake(gathered.where(("model", "heads", name)), show_path(("model", "heads", name)), problem)
            continue
        if section == "records":
            yield Mistake(gathered.where((section, name)), head, problem)
            continue
        path: tuple[str | int, ...] = (section, _written(file, section, name)) if name else (section,)
        yield from column_mistakes(gathered, path, problem)


def _written(file: JobFile, section: str, name: str) -> str:
    """The name in the file that stands for a column or a transform: itself, or a pattern with braces."""
    for pattern in file.transforms if section == "transforms" else file.columns:
        try:
            if name in (pattern, *expand(pattern)):
                return pattern
        except ValueError:
            continue
    return name


def _layers(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    for number, layer in enumerate(file.model.layers):
        for problem in layers.wrong(layer):
            yield _of_problem(gathered, ("model", "layers", number), problem)


def _graph(file: JobFile, schema: Schema, gathered: Gathered) -> Iterator[Mistake]:
    """Yields what is wrong with the vertices. The engine reports shapes that do not fit."""
    tables = file.model.graph
    if tables is None:
        return
    columns = {name: None for name, *_ in graph_of(tables, schema)["columns"]}
    for name, problem in graph.wrong(tables, columns):
        yield _of_problem(gathered, ("model", "graph", name) if name else ("model", "graph"), problem)


def _heads(file: JobFile, schema: Schema, gathered: Gathered) -> Iterator[Mistake]:
    """Yields what is wrong with what the heads' output layers read. Nothing is wrong with the graph."""
    given = {name: head.of or "" for name, head in file.model.heads.items()}
    if not given:
        return
    tables = file.model.graph
    found = None if tables is None else graph.Graph.of_dict(graph_of(tables, schema))
    for name, problem in heads.wrong_of(given, found):
        yield _of_problem(gathered, ("model", "heads", name) if name else ("model", "graph"), problem)


def _loss(file: JobFile, schema: Schema, gathered: Gathered) -> Iterator[Mistake]:
    """Yields what is wrong with each loss's settings, those that go by the classes of its label too."""
    model = file.model
    for name, column in schema.labels:
        head = model.heads.get(name)
        loss, path = (model.loss, ("model", "loss")) if head is None else (head.loss, ("model", "heads", name, "loss"))
        for problem in losses.wrong(loss.name, loss.model_extra or {}, schema.labelled.classes(name, column)):
            with_name = replace(problem, near=("name", *problem.near)) if problem.unknown else problem
            yield _of_problem(gathered, path, with_name)


def _optimizer(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    name = file.optimizer.name
    for tables, problem in optimizers.wrong(name, file.optimizer.model_extra or {}):
        if problem.unknown and not tables:
            problem = replace(problem, near=("name", "learning_rate", *problem.near))
        yield _of_problem(gathered, ("optimizer", *tables), problem)


def _schedule(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    schedule = file.optimizer.schedule
    known = schedules.options(schedule.name)
    for problem in problems(schedule.model_extra or {}, known, f"setting of {schedule.name}"):
        with_name = replace(problem, near=("name", *problem.near)) if problem.unknown else problem
        yield _of_problem(gathered, ("optimizer", "schedule"), with_name)


def _format(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    known, own = tuple(Records.model_fields), formats.options(file.records.format)
    what = f"setting of {file.records.format}" if own else "setting"
    for problem in formats.option_problems(file.records.format, file.records.model_extra or {}, what):
        yield _of_problem(gathered, ("records",), replace(problem, near=(*known, *own)) if problem.unknown else problem)


def _given_columns(file: JobFile, schema: Schema, gathered: Gathered) -> Iterator[Mistake]:
    """Columns that records of the format cannot give."""
    for name, problem in formats.mistakes(file.records.named, schema):
        yield from column_mistakes(gathered, ("columns", _written(file, "columns", name)), problem)


def _of_problem(gathered: Gathered, table: tuple[str | int, ...], problem: Problem) -> Mistake:
    """A mistake of a table whose settings an entry of a registry declares, at its line."""
    path = (*table, problem.name) if problem.name else table
    if problem.unknown:
        return replace(Mistake.unknown(gathered.where(path), show_path(path), problem.near), expected=problem.expected)
    if problem.got is NOTHING:
        return Mistake(gathered.where(table), show_path(path), str(problem))
    given = next(iter(problem.got), "") if isinstance(problem.got, dict) else problem.got
    return _mistake(gathered, path, problem.expected, problem.got, nearest=nearest(str(given), problem.near))


def _topics(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    registry = all_topics()
    allowed = [topic.suffix for topic in registry.values()]
    used: dict[str, str] = {}
    for key, settings in file.topics.items():
        path = ("topics", key)
        topic = registry.get(key.replace("-", "_"))
        if topic is None:
            yield Mistake.unknown(gathered.where(path), show_path(path), allowed, "topic")
            continue
        for setting, expected, got in topic.wrong(settings.model_dump(exclude_none=True)):
            yield _mistake(gathered, (*path, *setting), expected, got)
    for topic in topics_of(file.train.hosts).values():
        given = topic.of(file.topics)
        name = topic.name(file.name) if given is None or given.name is None else given.name
        if name in used:
            yield _mistake(gathered, ("topics", topic.suffix), f"a topic of its own ({used[name]} has this one)", name)
        used[name] = topic.suffix


def _model(file: JobFile, schema: Schema, gathered: Gathered) -> Iterator[Mistake]:
    """Yields what only the engine finds, and a snapshot rate that is too high, for which it knows the size."""
    try:
        model = Model(engine_spec(file, schema))
    except UserMistake as error:
        path, _, problem = str(error).partition(": ")
        yield Mistake(gathered.where(("model",)), path, problem)
        return
    yield from _early_stopping(file, model, gathered)
    size = model.state_bytes
    if file.train.hosts == "many" and size > MANY_HOSTS_STATE_BYTES:
        expected = f'a model state of at most 500 MB with hosts = "many": a smaller model, {_ONE_HOST}'
        yield _mistake(gathered, ("train", "hosts"), expected, _Words(f"{size / 1e6:,.0f} MB"))
    if size / file.publish.interval_s > SNAPSHOT_BYTES_PER_S:
        least_s = size / SNAPSHOT_BYTES_PER_S
        yield _mistake(
            gathered,
            ("publish", "interval"),
            f"snapshots of at most 100 MB/s, which an interval of {least_s:.1f}s or more gives",
            _Words(f"{size / file.publish.interval_s / 1e6:,.0f} MB/s"),
            warning=True,
        )


def _early_stopping(file: JobFile, model: Model, gathered: Gathered) -> Iterator[Mistake]:
    settings, path = file.train.early_stopping, ("train", "early_stopping")
    if settings is None:
        return
    if not settings.conditions(minimise=True).end_by_themselves:
        expected = "one or more of no_improvement, best_score, rows, epochs, time"
        yield _mistake(gathered, path, expected, _Words("none that ends training"))
    try:
        settings.figure(model.figures)
    except ValueError as allowed:
        expected = f"one of {', '.join(allowed.args)}"
        yield _mistake(gathered, (*path, "score"), expected, settings.score)

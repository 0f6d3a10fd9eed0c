"""What spans settings: the ring and the round, columns and the loss, topics among each other, the snapshot rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamtrain import _native
from streamtrain.columns.names import expand
from streamtrain.columns.schema import Schema
from streamtrain.compute import layers, losses, optimizers
from streamtrain.errors import UserMistake
from streamtrain.job.file import JobFile, column_mistakes
from streamtrain.job.mistakes import Mistake, nearest, show_path, show_value
from streamtrain.job.optimizer import optimizer_accepts, optimizer_settings, optimizer_takes
from streamtrain.job.sections import TopicSettings
from streamtrain.job.sources import Gathered
from streamtrain.topics.topic import all_topics

SNAPSHOT_BYTES_PER_S = 100_000_000  # above it a job is warned: a follower and the broker's disk must keep up


def check_together(file: JobFile, gathered: Gathered, wrong: set[str]) -> list[Mistake]:
    """Mistakes and warnings of values that are each right by themselves; none of sections that are `wrong` already."""
    found: list[Mistake] = []
    if not wrong & {"train"}:
        found += _ring(file, gathered)
    if not wrong & {"columns", "model"}:
        found += _columns(file, gathered)
    if not wrong & {"model"}:
        found += _layers(file, gathered)
    if not wrong & {"optimizer"}:
        found += _optimizer(file, gathered)
    if not wrong & {"topics", "name"}:
        found += _topics(file, gathered)
    if not wrong and not found:
        found += _snapshot_rate(file, gathered)
    return found


def _ring(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    train = file.train
    least = 2 * train.round_slots
    if train.prefetch_buffer < least:
        expected = (
            f"at least two rounds: 2 x {train.workers} workers x {train.averaging_frequency} steps = {least} slots"
        )
        yield _mistake(gathered, ("train", "prefetch_buffer"), expected, train.prefetch_buffer)


class _Words(str):
    """What was found, said in words and not as a value of the file."""


def _mistake(gathered: Gathered, path: tuple[str | int, ...], expected: str, got: Any, **more: Any) -> Mistake:
    shown = got if isinstance(got, _Words) else show_value(got)
    return Mistake(gathered.where(path), show_path(path), expected, shown, **more)


def _columns(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    """What the schema finds wrong, at the line of the column, or of the pattern that stands for it."""
    try:
        Schema.from_columns(file.columns, file.model.loss)
    except UserMistake as error:
        for line in str(error).splitlines():
            head, _, problem = line.partition(": ")
            name = head.removeprefix("columns").removeprefix(".")
            path: tuple[str | int, ...] = ("columns", _written(file, name)) if name else ("columns",)
            yield from column_mistakes(gathered, path, problem)


def _written(file: JobFile, name: str) -> str:
    """The name in the file that stands for a column: itself, or a pattern with braces."""
    for pattern in file.columns:
        try:
            if name in (pattern, *expand(pattern)):
                return pattern
        except ValueError:
            continue
    return name


def _layers(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    known = layers.names()
    for number, layer in enumerate(file.model.layers):
        path: tuple[str | int, ...] = ("model", "layers", number)
        kinds = [key for key in layer if key in known]
        if len(kinds) > 1:
            yield _mistake(gathered, path, "one layer to a table", _Words(" and ".join(kinds)))
        elif not kinds:
            near = nearest(next(iter(layer), ""), known)
            yield _mistake(gathered, path, f"a layer, one of {', '.join(known)}", layer, nearest=near)
        else:
            yield from _layer(gathered, path, kinds[0], layer)


def _layer(gathered: Gathered, path: tuple[str | int, ...], kind: str, layer: dict[str, Any]) -> Iterator[Mistake]:
    """One layer's size and options, which its own file names."""
    options: dict[str, tuple[str, ...]] = layers.get(kind).OPTIONS
    for name, value in layer.items():
        if name == kind:
            if type(value) is not int or not 1 <= value <= _native.MAX_COLUMNS:
                yield _mistake(gathered, (*path, name), f"a whole number from 1 to {_native.MAX_COLUMNS}", value)
        elif name not in options:
            shown = show_path((*path, name))
            yield Mistake.unknown(gathered.where((*path, name)), shown, [kind, *options], f"option of {kind}")
        elif value not in options[name]:
            near = nearest(str(value), options[name])
            yield _mistake(gathered, (*path, name), f"one of {', '.join(options[name])}", value, nearest=near)


def _optimizer(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    """The optimizer's own settings, which its file names."""
    given = file.optimizer.model_extra or {}
    name = file.optimizer.name
    allowed = optimizer_settings(name)
    for setting, value in given.items():
        path = ("optimizer", setting)
        if setting not in allowed:
            names = ["name", "learning_rate", *allowed]
            yield Mistake.unknown(gathered.where(path), show_path(path), names, f"setting of {name}")
        elif not optimizer_accepts(setting, value):
            yield _mistake(gathered, path, optimizer_takes(setting), value)


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
        if settings.name is not None and not topic.renameable:
            text = "no name: a bootstrap address and a job name must be enough to find it"
            yield _mistake(gathered, (*path, "name"), text, settings.name)
        if settings.partitions not in (None, topic.partitions) and topic.fixed_partitions:
            yield _mistake(gathered, (*path, "partitions"), f"{topic.partitions}, which is fixed", settings.partitions)
    for key, topic in registry.items():
        name = topic_settings(file, key).name or f"{file.name}.{topic.suffix}"
        if name in used:
            yield _mistake(gathered, ("topics", topic.suffix), f"a topic of its own ({used[name]} has this one)", name)
        used[name] = topic.suffix


def topic_settings(file: JobFile, key: str) -> TopicSettings:
    """What the file says of a topic, with dashes or underscores; an empty TopicSettings where nothing."""
    wanted = key.replace("-", "_")
    found = [settings for name, settings in file.topics.items() if name.replace("-", "_") == wanted]
    return found[-1] if found else TopicSettings()


def state_bytes(file: JobFile) -> int:
    """Size of a snapshot but for headers, statistics and scores, some 100 kB: parameters and the optimizer's state."""
    inputs = Schema.from_columns(file.columns, file.model.loss).engine_inputs()
    parameters = sum(table["buckets"] * table["embed"] for table in inputs["categories"])
    width = inputs["numbers"] + sum(table["embed"] for table in inputs["categories"])
    for layer in file.model.layers:
        out = next((size for size in layer.values() if type(size) is int), width)
        parameters += (width + 1) * out
        width = out
    parameters += (width + 1) * (inputs["classes"] if losses.label_kind(file.model.loss) == "class" else 1)
    return 4 * int(parameters) * (1 + len(optimizers.get(file.optimizer.name).STATE))


def _snapshot_rate(file: JobFile, gathered: Gathered) -> Iterator[Mistake]:
    rate = state_bytes(file) / file.publish.interval_s
    if rate > SNAPSHOT_BYTES_PER_S:
        least_s = state_bytes(file) / SNAPSHOT_BYTES_PER_S
        yield _mistake(
            gathered,
            ("publish", "interval"),
            f"snapshots of at most 100 MB/s, which an interval of {least_s:.1f}s or more gives",
            _Words(f"{rate / 1e6:,.0f} MB/s"),
            warning=True,
        )

"""The settings table: what each takes, its default, help and environment name, read from the sections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import get_args

from pydantic import BaseModel

from streamtrain.columns import formats, transforms
from streamtrain.columns.column import Column
from streamtrain.compute import averagings, layers, losses, optimizers, schedules
from streamtrain.compute.options import REQUIRED, Option, Options
from streamtrain.job.file import JobFile
from streamtrain.job.kafka_settings import OWNED, SIDES
from streamtrain.job.mistakes import show_value
from streamtrain.job.sections import Head, TopicSettings
from streamtrain.job.setting_sources import ENVIRONMENT_PREFIX
from streamtrain.job.words import bare, default, takes


@dataclass(frozen=True)
class Setting:
    """One setting; `default` as it stands in a file, "" where there is none; `when`: another setting it goes with.
    `environment` is "" where no variable reaches it."""

    path: str
    takes: str
    default: str
    help: str
    environment: str
    when: str = ""


def _rows(model: type[BaseModel], prefix: str) -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        annotation = bare(field.annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _rows(annotation, f"{path}.")
            if path == "model.loss":
                yield from _of_entries(path, "name", losses.names(), losses.options)
            if path == "optimizer":
                yield from _of_all_optimizers(path)
                yield from _of_entries(path, "name", optimizers.names(), optimizers.own_options)
            if path == "optimizer.schedule":
                yield from _of_all(path, schedules.COMMON)
                yield from _of_entries(path, "name", schedules.names(), schedules.own_options)
            if path == "train.averaging":
                yield from _of_entries(path, "name", averagings.names(), averagings.options)
            if path == "records":
                yield from _of_entries(path, "format", formats.format_names(), formats.options)
        elif path == "topics":
            yield from _rows(TopicSettings, "topics.<topic>.")
        elif path == "model.heads":
            yield from _rows(Head, "model.heads.<label>.")
        elif path == "columns":
            yield from _rows(Column, "columns.<column>.")
        else:
            yield Setting(path, takes(field), default(field), field.description or "", _variable(path))
            if path == "model.layers":
                yield from _of_entries_by_name("model.layers", layers.names(), layers.options)
            if path == "transforms":
                yield from _of_entries_by_name("transforms.<column>", transforms.known(), transforms.options)
            for either in get_args(annotation):  # a value, or a table of its own
                if isinstance(either, type) and issubclass(either, BaseModel):
                    yield from _rows(either, f"{path}.")


def _of_all(section: str, options: Options) -> Iterator[Setting]:
    for name, option in options.items():
        path = f"{section}.{name}"
        yield Setting(path, option.takes(), _default(option), option.help, _variable(path))


def _of_all_optimizers(section: str) -> Iterator[Setting]:
    """Yields the settings that each optimizer takes, and again in the table of a group of parameters."""
    yield from _of_all(section, optimizers.COMMON)
    groups = ", ".join(optimizers.GROUPS)
    about = f"any of the optimizer's settings, for one group of parameters: {groups}"
    yield Setting(f"{section}.groups.<group>.<setting>", "what the setting takes", "", about, "")


def _of_entries_by_name(section: str, names: list[str], options: Callable[[str], Options]) -> Iterator[Setting]:
    """Tables that name their entry themselves, as a layer's: no environment name and no flag reaches into them."""
    for kind in names:
        for name, option in options(kind).items():
            yield Setting(f"{section}.<{kind}>.{name}", option.takes(), _default(option), option.help, "")


def _of_entries(section: str, key: str, names: list[str], options: Callable[[str], Options]) -> Iterator[Setting]:
    """Yields what a section takes for one of the entries that its setting `key` names."""
    for name in names:
        for setting, option in options(name).items():
            path, help_ = f"{section}.{setting}", f"of {name}: {option.help}"
            yield Setting(path, option.takes(), _default(option), help_, _variable(path), f'{section}.{key}="{name}"')


def _default(option: Option) -> str:
    return "" if option.default is REQUIRED else show_value(option.default)


def _variable(path: str) -> str:
    """A property of librdkafka has dots where others have underscores: STREAMTRAIN_KAFKA__SASL_PASSWORD."""
    section, _, rest = path.partition(".")
    if section == "kafka":
        side, _, name = rest.partition(".") if rest.partition(".")[0] in SIDES else ("", "", rest)
        rest = ".".join(filter(None, (side, name.replace(".", "_"))))
    return ENVIRONMENT_PREFIX + ".".join(filter(None, (section, rest))).upper().replace(".", "__")


def _of_kafka() -> Iterator[Setting]:
    """[kafka] takes what librdkafka knows; its own documentation has the list."""
    rows = {
        "bootstrap.servers": "Kafka's addresses, host:port with commas between",
        "<property>": f"any property of librdkafka for both sides, but {', '.join(OWNED)}: those streamtrain sets",
        **{f"{side}.<property>": f"the same for the {side} alone" for side in SIDES},
    }
    for name, text in rows.items():
        yield Setting(f"kafka.{name}", "what librdkafka takes", "", text, _variable(f"kafka.{name}"))


@cache
def settings_table() -> tuple[Setting, ...]:
    """Every setting of a job file. `<column>`, `<topic>` and `<property>` stand for a name."""
    about = "any property of the schema registry's client; url is its address, such as http://registry:8081"
    takes = "what confluent_kafka.schema_registry takes"
    registry = Setting("registry.<property>", takes, "", about, _variable("registry.<property>"))
    return (*_rows(JobFile, ""), *_of_kafka(), registry)

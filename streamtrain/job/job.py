"""A job: what its file, the environment and flags say together. Immutable, picklable, and silent about secrets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.columns import formats
from streamtrain.columns.row_plan import BATCH_ROWS, RowPlan
from streamtrain.columns.schema import Schema
from streamtrain.compute import losses, optimizers, schedules
from streamtrain.compute.model import Model as EngineModel
from streamtrain.compute.torch import TorchModule
from streamtrain.errors import UserMistake
from streamtrain.job.checks import check_together
from streamtrain.job.documents import check_frame, check_schema, frame_records, read_documents
from streamtrain.job.file import SECTIONS, JobFile, check_values
from streamtrain.job.job_model import engine_spec, schema_of
from streamtrain.job.kafka_settings import KafkaSettings, for_side, kafka_settings
from streamtrain.job.lines import Path as Keys
from streamtrain.job.mistakes import JobMistakes, Mistake, show_path, show_value
from streamtrain.job.named_network import with_network
from streamtrain.job.registry_settings import RegistrySettings, registry_settings
from streamtrain.job.round_sizes import RoundSizes, round_sizes
from streamtrain.job.sections import (
    Ingest,
    Model,
    Optimizer,
    Predict,
    Publish,
    Records,
    TopicSettings,
    Train,
)
from streamtrain.job.setting_sources import Gathered, read_environment, read_file, read_sets
from streamtrain.schemas import bare_format, job_format
from streamtrain.topics.topic import TopicWish, job_topics, topic

_LISTED = ("columns", "transforms")  # sections of named tables, whose order matters
_NO_BOOTSTRAP = (
    'no broker given: set bootstrap.servers = "host:9092" in [kafka], '
    "STREAMTRAIN_KAFKA__BOOTSTRAP_SERVERS or --bootstrap"
)


@dataclass(frozen=True)
class Job:
    """One job. Settings are reached by section: `job.train.workers`, `job.publish.interval_s`."""

    file: JobFile
    kafka: KafkaSettings
    registry: RegistrySettings = field(default_factory=RegistrySettings)
    warnings: tuple[Mistake, ...] = ()
    network: TorchModule | None = field(default=None, compare=False)  # of a model that is not of layers

    @classmethod
    def load(
        cls,
        path: str | Path,
        environment: Mapping[str, str] | None = None,
        sets: Sequence[str] = (),
        bootstrap: str | None = None,
        flags: Mapping[str, str] | None = None,
        imports: bool = True,
    ) -> Job:
        """Reads a job file; over it `environment` (STREAMTRAIN_<SECTION>__<NAME>), over that `sets`, then `flags`.

        A set is a text like `train.workers=4`; `flags` are more of them, under the names that mistakes are told by.

        Raises JobMistakes with every mistake there is, and UserMistake where the file cannot be read. Without `imports`
        a module of PyTorch that the file names is a mistake.
        """
        return cls.parse(
            _text(path),
            name=Path(path).name,
            environment=environment,
            sets=sets,
            bootstrap=bootstrap,
            flags=flags,
            folder=Path(path).parent,
            imports=imports,
        )

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        name: str = "job.toml",
        environment: Mapping[str, str] | None = None,
        sets: Sequence[str] = (),
        bootstrap: str | None = None,
        flags: Mapping[str, str] | None = None,
        folder: Path | None = None,
        module: Any = None,
        imports: bool = True,
    ) -> Job:
        """Loads a job as `load`, from the text of a job file; the files that it names lie in `folder`.

        `module`: a torch.nn.Module, or what makes one, in the place of [model] torch."""
        gathered = Gathered(name)
        read_file(gathered, text)
        if gathered.mistakes:
            raise JobMistakes(name, gathered.mistakes)
        read_environment(gathered, environment or {}, SECTIONS)
        read_sets(gathered, sets, SECTIONS)
        for flag, setting in (flags or {}).items():
            read_sets(gathered, [setting], SECTIONS, flag)
        if bootstrap is not None:
            gathered.put(("kafka", "bootstrap.servers"), bootstrap, "--bootstrap")
        return cls._checked(gathered, folder=folder, module=module, imports=imports)

    @classmethod
    def from_effective(
        cls, effective: Mapping[str, Any], kafka: KafkaSettings | None = None, network: TorchModule | None = None
    ) -> Job:
        """The job of a manifest, which holds no [kafka]; of a network it says only what that has to agree with."""
        gathered = Gathered("manifest", tree={**effective, **_named(effective)})
        return replace(cls._checked(gathered, kafka or KafkaSettings(), imports=False), network=network)

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any], module: Any = None) -> Job:
        """A job that meets no Kafka, from a job file's tables; it is called "fit" where they give no name.

        The files that it names lie in the working directory; `module` as for `parse`. Tuples and NumPy's numbers and
        arrays stand for what a file has in their place.
        """
        kept = {name: _plain(table) for name, table in tables.items() if name not in ("kafka", "registry", "topics")}
        return cls._checked(Gathered("job", tree={"name": "fit", **kept}), KafkaSettings(), Path(), module)

    @classmethod
    def without_kafka(cls, path: str | Path, module: Any = None) -> Job:
        """The job of a job file, but for [kafka] and [topics]; `module` as for `parse`."""
        gathered = Gathered(Path(path).name)
        read_file(gathered, _text(path))
        if gathered.mistakes:
            raise JobMistakes(gathered.name, gathered.mistakes)
        for name in ("kafka", "topics"):
            gathered.tree.pop(name, None)
        gathered.apart = {name: [] for name in gathered.apart}
        return cls._checked(gathered, KafkaSettings(), Path(path).parent, module)

    @classmethod
    def _checked(
        cls,
        gathered: Gathered,
        kafka: KafkaSettings | None = None,
        folder: Path | None = None,
        module: Any = None,
        imports: bool = True,
    ) -> Job:
        read_documents(gathered, folder)
        registry = registry_settings(gathered)
        if registry:
            frame_records(gathered)
        if not registry:
            check_schema(gathered)
        if kafka is None:
            if not registry:
                check_frame(gathered)
            kafka = kafka_settings(gathered)
            if not kafka.bootstrap and not any(mistake.path.startswith("kafka") for mistake in gathered.mistakes):
                gathered.mistakes.append(Mistake(gathered.where(("kafka",)), "kafka.bootstrap.servers", _NO_BOOTSTRAP))
        file, network = with_network(check_values(gathered), gathered, folder, module, imports)
        wrong = {mistake.path.partition(".")[0].partition("[")[0] for mistake in gathered.mistakes}
        found = check_together(file, gathered, wrong) if file is not None else []
        mistakes = [*gathered.mistakes, *(mistake for mistake in found if not mistake.warning)]
        if mistakes or file is None:
            raise JobMistakes(gathered.name, sorted(mistakes, key=_by_line))
        return cls(file, kafka, registry, tuple(mistake for mistake in found if mistake.warning), network)

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def records(self) -> Records:
        return self.file.records

    @property
    def model(self) -> Model:
        return self.file.model

    @property
    def optimizer(self) -> Optimizer:
        return self.file.optimizer

    @property
    def train(self) -> Train:
        return self.file.train

    @property
    def ingest(self) -> Ingest:
        return self.file.ingest

    @property
    def publish(self) -> Publish:
        return self.file.publish

    @property
    def predict(self) -> Predict:
        return self.file.predict

    @cached_property
    def schema(self) -> Schema:
        """The columns and transforms, compiled."""
        return schema_of(self.file)

    def plan(self, *, requests: bool = False, batch_rows: int = BATCH_ROWS) -> RowPlan:
        """Returns the plan by which decoders and transforms turn this job's records and rows into arrays, so many
        rows at a time. With `requests` it is for rows to predict for, which have no label."""
        schema = self.schema.for_requests() if requests else self.schema
        return RowPlan(schema, job_format(self, "requests" if requests else "records"), bare_format(self), batch_rows)

    @property
    def state_bytes(self) -> int:
        """About how large a snapshot is."""
        return EngineModel(engine_spec(self.file, self.schema)).state_bytes

    @cached_property
    def rounds(self) -> RoundSizes:
        """Sizes of the rounds and the ring, with what "auto" means for this model."""
        layout = _native.SlotLayout.make(self.train.update_rows, 1, self.schema.block_specs())
        return round_sizes(self.train, self.state_bytes, layout.slot_bytes / layout.row_capacity)

    @property
    def schedule(self) -> dict[str, Any]:
        """Returns the schedule of the learning rate, as round settings have it: {"name", "rate", settings}."""
        settings = self.optimizer.schedule
        return schedules.normal(settings.name, settings.model_extra or {}, self.optimizer.learning_rate)

    def topic(self, key: str) -> TopicSettings:
        """A topic by its key ("records", "dead-letters"), its name filled in; raises UserMistake on an unknown key."""
        entry = topic(key)
        settings = entry.of(self.file.topics) or TopicSettings()
        return settings.model_copy(update={"name": entry.name(self.name, settings.name)})

    def topic_wishes(self) -> list[TopicWish]:
        """Returns every topic of the job, as its file wants it."""
        given = {key: settings.model_dump(exclude_none=True) for key, settings in self.file.topics.items()}
        return job_topics(self.name, given, self.train.hosts)

    def model_spec(self) -> dict[str, Any]:
        """Returns what the engine builds the model from, as it stands in the manifest."""
        return {"columns": self.effective()["columns"], **engine_spec(self.file, self.schema)}

    def kafka_consumer(self) -> dict[str, str]:
        """librdkafka properties of a consumer, without those streamtrain sets."""
        return {**for_side(self.kafka.common, "C"), **self.kafka.consumer}

    def kafka_producer(self) -> dict[str, str]:
        """librdkafka properties of a producer, without those streamtrain sets."""
        return {**for_side(self.kafka.common, "P"), **self.kafka.producer}

    def kafka_admin(self) -> dict[str, str]:
        """librdkafka properties of an admin client."""
        return for_side(for_side(self.kafka.common, "P"), "C")

    def effective(self) -> dict[str, Any]:
        """Every setting but [kafka] and [registry], defaults filled in, as JSON can hold it; `from_effective` reads it.

        Columns and transforms are lists, each with its name: their order matters, and a manifest sorts the keys of its
        tables.
        """
        settings: dict[str, Any] = _given(self.file.model_dump(mode="json", by_alias=True))
        for section in _LISTED:
            settings[section] = [{"name": name, **table} for name, table in settings[section].items()]
        for name, head in self.model.heads.items():
            settings["model"]["heads"][name]["loss"] |= losses.normal(head.loss.name, head.loss.model_extra or {})
        settings["model"]["loss"] |= losses.normal(self.model.loss.name, self.model.loss.model_extra or {})
        settings["model"].pop("loss" if self.model.heads else "heads")
        settings["optimizer"] |= optimizers.normal(self.optimizer.name, self.optimizer.model_extra or {})
        settings["train"]["averaging"] = self.train.averaging.spec
        for name in ("averaging_frequency", "min_batch_rows", "prefetch_buffer"):
            settings["train"][name] = getattr(self.rounds, name)
        settings["optimizer"]["schedule"] = {key: value for key, value in self.schedule.items() if key != "rate"}
        return settings

    def differences(self, effective: Mapping[str, Any]) -> list[str]:
        """Returns in lines what of columns, transforms and model differs from another job's `effective()`. A
        snapshot fits if there is none."""
        ours, lines = self.effective(), []
        pairs: list[tuple[Keys, Any, Any]] = []
        for section, mine in _named(ours).items():
            other = _by_name(section, effective.get(section, []))
            if mine.keys() == other.keys() and list(mine) != list(other):
                lines.append(f"{section}: in another order than the snapshot's: " + ", ".join(other))
            pairs += _apart((section,), other, mine)
        conditions = [each.get("records", {}).get("where") for each in (effective, ours)]
        pairs += [] if conditions[0] == conditions[1] else [(("records", "where"), *conditions)]
        was_model, model = dict(effective.get("model", {})), dict(ours["model"])
        pairs += _apart(("model", "heads"), was_model.pop("heads", {}), model.pop("heads", {}))
        pairs += _apart(("model",), was_model, model, deep=False)
        for path, was, now in pairs:
            texts = ("none" if value is None else show_value(value) for value in (was, now))
            lines.append("{}: the snapshot has {}, the job file {}".format(show_path(path), *texts))
        return lines

    def with_schema(self, schema: str) -> Job:
        """The same job, whose records are read by this schema; UserMistake where its columns cannot be."""
        records = self.file.records.model_copy(update={"schema": schema})
        named = records.named
        given = {name: value for name, value in named.items() if name != "name"}
        wrong = [f"records.{each.name}: {each}" for each in formats.option_problems(records.format, given, "setting")]
        wrong += [f"columns.{name}: {problem}" for name, problem in formats.mistakes(named, self.schema)]
        if wrong:
            raise UserMistake("\n".join(["the registry's newest schema of the records:", *wrong]))
        return replace(self, file=self.file.model_copy(update={"records": records}))

    def digest(self) -> str:
        """SHA-256 of `effective()`, in hex."""
        return settings_digest(self.effective())


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UserMistake(f"{path}: cannot be read as a job file: {reason}") from error


def _plain(value: Any) -> Any:
    """Returns the value as a file would give it."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def settings_digest(effective: Mapping[str, Any]) -> str:
    """SHA-256 of what `Job.effective` gave, in hex."""
    text = json.dumps(effective, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _given(settings: Any) -> Any:
    """Without what is not given; what is off has been written as "off"."""
    if isinstance(settings, dict):
        return {name: _given(value) for name, value in settings.items() if value is not None}
    return [_given(value) for value in settings] if isinstance(settings, list) else settings


def _named(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the sections of `effective()` that are lists, as a job file has them."""
    return {section: _by_name(section, settings.get(section, [])) for section in _LISTED}


def _by_name(section: str, columns: Any) -> dict[str, Any]:
    """Columns of `effective()` as a job file has them. UserMistake where they are none."""
    if not isinstance(columns, list) or not all(isinstance(column, Mapping) and "name" in column for column in columns):
        raise UserMistake(f"{section}: expected a list of tables that have a name, got {str(columns)[:100]}")
    return {str(column["name"]): {key: column[key] for key in column if key != "name"} for column in columns}


def _apart(
    path: Keys, was: Mapping[str, Any], now: Mapping[str, Any], deep: bool = True
) -> Iterator[tuple[Keys, Any, Any]]:
    """Yields what differs between two tables, as (path, was, now). For an entry that both have as a table, its own
    settings are compared."""
    for name in dict.fromkeys([*was, *now]):
        one, other = was.get(name), now.get(name)
        if one == other:
            continue
        if deep and isinstance(one, dict) and isinstance(other, dict):
            yield from _apart((*path, name), one, other, deep=False)
        else:
            yield (*path, name), one, other


def _by_line(mistake: Mistake) -> tuple[int, str]:
    line = mistake.where.rpartition(":")[2]
    return (int(line), "") if line.isdigit() else (1 << 31, mistake.where)

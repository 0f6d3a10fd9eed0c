"""The sections of a job file. A field is a setting; its default, unit, range and help stand here only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from streamtrain import _native
from streamtrain.columns import formats
from streamtrain.columns.kinds.parsed import is_value
from streamtrain.compute import averagings, backends, losses, optimizers, options, schedules
from streamtrain.compute.early_stopping import Conditions, choose_score
from streamtrain.job.affinity import OFF, Affinity
from streamtrain.job.units import Count, Duration, OneOf, Size, Start, Tables, Text


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def _as_table(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


# A topic's letters; 249 is Kafka's limit, of which a job leaves 49 to the suffixes.
JobName = Annotated[str, Text("a name of letters, digits, '.', '_' and '-', at most 200", r"[A-Za-z0-9._-]{1,200}")]
TopicName = Annotated[
    str, Text("a topic name: letters, digits, '.', '_' and '-', at most 249", r"[A-Za-z0-9._-]{1,249}")
]


class TopicSettings(Section):
    """One topic: its name, or a table. What is not given is the topic's own default."""

    name: TopicName | None = Field(default=None, description="the topic's name; default: <job>.<topic>")
    partitions: int | None = Field(
        default=None, ge=1, le=_native.MAX_PARTITIONS, description="partitions it is created with"
    )
    replication: int | None = Field(
        default=None, ge=1, le=100, description="copies of each partition; default: the broker's own"
    )
    config: dict[str, str | int | float | bool] = Field(default={}, description="topic settings it is created with")


class Records(Section):
    """The format of the records. Each format has its own settings beside these."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    format: Annotated[str, OneOf(formats.REGISTRY.names)] = Field(
        default="json", description="how a record's bytes hold its rows"
    )
    where: str | None = Field(
        default=None,
        description=(
            "the condition of the rows that are trained, such as \"distance > 0 and carrier != 'XX'\"; others are "
            "filtered. Requests are answered whatever it says"
        ),
    )
    missing_words: list[str] = Field(
        default=[],
        description=(
            "texts that stand for a missing cell in columns of numbers and times, beside the usual ones such as NA, "
            "nan, null and -; none that is a number"
        ),
    )
    max_decoded_bytes: Annotated[int, Size(1)] = Field(
        default=64 * 2**20, description="bytes of the largest picture, decoded: what says it is larger is a dead letter"
    )
    start: Annotated[str, Start()] = Field(default="earliest", description="where the job's first start begins to read")
    max_dead_letter_share: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="share of dead-lettered rows above which training stops, per window, from 1,000 rows on",
    )

    @field_validator("missing_words")
    @classmethod
    def _are_words(cls, given: list[str]) -> list[str]:
        for word in given:
            if not word or word != word.strip(" ") or is_value(word):
                expected = "texts without spaces around them that are no number and no word for true or false"
                raise PydanticCustomError("section", "{expected}", {"expected": expected})
        return given

    @property
    def named(self) -> dict[str, Any]:
        """The format as terms have it: {"name": …} and its options, defaults filled in."""
        return {"name": self.format, **options.read(self.model_extra or {}, formats.options(self.format))}


class Loss(Section):
    """The loss that is minimised. Each loss has settings of its own beside its name."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    name: Annotated[str, OneOf(losses.names)] = Field(
        default="binary_cross_entropy", description="what is minimised; `loss` may be the name alone"
    )


class Head(Section):
    """One of several outputs, by the name of the label that it learns."""

    loss: Annotated[Loss, BeforeValidator(_as_table)] = Field(default_factory=Loss)
    weight: float = Field(
        default=1.0, gt=0, le=1_000_000, allow_inf_nan=False,
        description="what its loss is multiplied by; the network learns from the sum",
    )  # fmt: skip
    of: str | None = Field(
        default=None,
        description="of a graph: the vertex that its output layer reads; the last if not given. None where a vertex is "
        "called as the head is: that is what the loss takes",
    )


class Model(Section):
    """The model that is trained. The loss adds the output layer, but not to a PyTorch module, which is the whole
    network."""

    layers: list[dict[str, Any]] = Field(
        default=[],
        description='from input to output, such as { dense = 64, activation = "relu" }; [] is the linear model',
    )
    graph: Annotated[list[dict[str, Any]] | None, Tables("a table of vertices by name")] = Field(
        default=None,
        description='in the place of layers: vertices by name, such as deep = { dense = 64, activation = "relu", of = '
        '"input" } or both = { concat = ["deep", "input.hour"] }; one called output is what the loss takes as it is',
    )
    torch: str | dict[str, Any] | None = Field(
        default=None,
        description='a PyTorch module in the place of layers, "package.module:Net", looked for beside the job file '
        "first: a class, or a function that makes one, called with the inputs where it takes an argument",
    )
    loss: Annotated[Loss, BeforeValidator(_as_table)] = Field(default_factory=Loss)
    heads: dict[str, Head] = Field(
        default={}, description="in the place of loss, where several columns are labels: one for each, of its name"
    )

    @property
    def losses(self) -> list[str]:
        """By name, of each head."""
        return [head.loss.name for head in self.heads.values()] or [self.loss.name]


class Schedule(Section):
    """The learning rate over the steps of the lineage. Each schedule has its own settings beside these."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    name: Annotated[str, OneOf(schedules.names)] = Field(
        default=schedules.DEFAULT, description="what the learning rate is multiplied by, step by step"
    )


class Optimizer(Section):
    """The rule by which parameters follow the gradient. Each optimizer has its own settings beside these."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    name: Annotated[str, OneOf(optimizers.names)] = Field(
        default="adam", description="the update rule"
    )
    learning_rate: float = Field(
        default=1e-3, gt=0, le=1_000, allow_inf_nan=False,
        description="the size of a step; if not given, what is usual for the optimizer",
    )

    schedule: Schedule = Field(default_factory=Schedule)

    @model_validator(mode="before")
    @classmethod
    def _usual_rate(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "learning_rate" in given or given.get("name") not in optimizers.names():
            return given
        return {**given, "learning_rate": optimizers.get(given["name"]).RATE}


class Averaging(Section):
    """The averaging of the workers' parameters at the end of a round. Each averaging has settings of its own."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    name: Annotated[str, OneOf(averagings.names)] = Field(
        default=averagings.DEFAULT, description="what the workers' parameters become"
    )

    @property
    def spec(self) -> dict[str, Any]:
        """Returns the averaging as a model spec has it, defaults filled in."""
        return averagings.normal(self.name, self.model_extra or {})


class HeldOut(Section):
    """Rows that are never trained, by which a stream's model is judged: those of files, or of a topic in the records'
    format, up to where it ends at the first start."""

    files: list[str] | None = Field(
        default=None, min_length=1, description="paths or patterns, as for --files, from where the trainer is started"
    )
    topic: TopicName | None = Field(default=None, description="name of the topic with the validation set")

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.files is None) == (self.topic is None):
            raise PydanticCustomError("section", "{expected}", {"expected": "files or a topic, one of the two"})
        return self


class EarlyStopping(Section):
    """When a trainer ends by itself: at the first publication at which one of these is so. Scores are those of windows
    of at least 10,000 rows, each scored before it was learned, and each an evaluation. Rows held out are scored by each
    publication in which a window closes."""

    no_improvement: int | None = Field(
        default=None, ge=1, le=1_000_000, description="stop after so many evaluations in a row without a better score"
    )
    least_improvement: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="by how much an evaluation must be better"
    )
    best_score: float | None = Field(default=None, allow_inf_nan=False, description="stop when the score is this good")
    rows: int | None = Field(default=None, ge=1, le=1 << 62, description="stop after so many trained rows")
    time_s: Annotated[float | None, Duration(1, off=True)] = Field(
        default=None, alias="time", description="stop so long after the first publication, by its clock"
    )
    epochs: int | None = Field(
        default=None, ge=1, le=1_000_000,
        description="stop after so many passes: starts with an end (--until-end, --files, --max-rows) that came to it",
    )
    invalid_score: bool = Field(
        default=False, description="stop at a score that is not finite, or has no value, as r2 of equal labels"
    )
    held_out: HeldOut | None = Field(
        default=None, description="what it is judged by in place of the windows, { files } or { topic }"
    )
    score: str | None = Field(
        default=None,
        description='a figure of the window, such as "auc"; if not given, the log loss, or of a number the rmse',
    )
    minimise: bool | None = Field(
        default=None, description="whether a lower score is better; needed only if the figure does not say so"
    )

    def conditions(self, minimise: bool) -> Conditions:
        """Returns the conditions for early stopping. `minimise`: a lower score is better."""
        return Conditions(
            minimise, invalid_score=self.invalid_score, best_score=self.best_score, no_improvement=self.no_improvement,
            least_improvement=self.least_improvement, rows=self.rows, epochs=self.epochs, time_s=self.time_s,
        )  # fmt: skip

    def figure(self, known: Sequence[str]) -> tuple[str, bool]:
        """The score's name, and whether less of it is better, where a model is judged by those figures. ValueError,
        which names what is allowed, where there is no such."""
        return choose_score(known, self.score, self.minimise)


MOST_ROWS = 1_048_576  # of a slot


class Train(Section):
    """The size of batches, workers and rounds."""

    batch_rows: int = Field(default=256, ge=1, le=MOST_ROWS, description="rows in a batch, once it is full-grown")
    batch_growth: Annotated[int | None, Count(1, 1_000_000_000)] = Field(
        default=4_000,
        description="a batch has a row for so many rows seen, at least one, at most batch_rows: a short stream needs "
        'many updates, a long one speed; "off": batch_rows from the start',
    )
    min_batch_rows: Annotated[int | None, Count(1, MOST_ROWS, none="auto")] = Field(
        default=None,
        description='rows in the smallest batch that grows; "auto": one for each MB of the model\'s state, at most '
        "batch_rows, as a round of a large table costs the same however few rows it has",
    )
    accumulate: int = Field(
        default=1, ge=1, le=MOST_ROWS,
        description="batches of batch_rows that are one update, by the gradient of all their rows",
    )
    workers: int = Field(default=1, ge=1, le=_native.MAX_WORKERS, description="worker processes")
    threads_per_worker: int = Field(
        default=1,
        ge=1,
        le=_native.MAX_PLAN_THREADS,
        description="threads on each batch of a worker, 256 rows at a time; to the same bits. More workers do more",
    )
    affinity: Annotated[str, Affinity()] = Field(
        default=OFF,
        description='the cores of each worker: a list for each, "0-3;4-7"; "auto": its own ones in order, where there '
        "are as many as threads. Two jobs of one host that choose so choose the same",
    )
    averaging_frequency: Annotated[int | None, Count(1, 1_000_000, none="auto")] = Field(
        default=None,
        description='steps per worker between two averagings; "auto": one for each MB of the model\'s state, 4 to 64',
    )
    round_interval_s: Annotated[float | None, Duration(1, off=True)] = Field(
        default=0.25,
        alias="round_interval",
        description="a round closes at the latest so long after its first record, or when a publication is due",
    )
    prefetch_buffer: Annotated[int | None, Count(1, 1_048_576, none="auto")] = Field(
        default=None, description='slots in the ring; "auto": three rounds, at least 24'
    )
    report_score_after_averaging: bool = Field(
        default=False, description="score the averaged parameters too, on the round's last batch"
    )
    averaging: Averaging = Field(default_factory=Averaging)
    average_optimizer_state: bool = Field(
        default=True,
        description="average the optimizer's state too; false: each worker keeps its own, and `workers` cannot change",
    )
    backend: Annotated[str, OneOf(lambda: ["auto", *backends.names()])] = Field(
        default="auto", description="the engine that computes the steps"
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of all random numbers")
    hosts: Literal["one", "many"] = Field(
        default="one",
        description='machines that train the job: "one" at a time, or "many" together, each with this job file',
    )
    early_stopping: EarlyStopping | None = Field(
        default=None, description="when it ends by itself, { no_improvement = 5 }; never if not given"
    )

    @property
    def update_rows(self) -> int:
        """Returns the rows of an update, once batches are full-grown. They lie in one slot, through which a step
        goes a tile of rows at a time. Only what a slot holds takes more memory."""
        return self.batch_rows * self.accumulate


class Ingest(Section):
    """The way records are read."""

    threads: Annotated[int | None, Count(1, 256, none="auto")] = Field(
        default=None,
        description='threads that read and decode, each partitions of its own; "auto": one for four cores; at most the '
        "partitions, and one where --max-rows counts the rows",
    )


class Archive(Section):
    """Older snapshots kept beside the newest."""

    every_s: Annotated[float, Duration(1_000)] = Field(
        default=600.0, alias="every", description="time between two archived snapshots"
    )
    keep: int = Field(default=24, ge=1, le=10_000, description="archived snapshots kept")


class Publish(Section):
    """When snapshots are published and how many stay."""

    interval_s: Annotated[float, Duration(1)] = Field(
        default=1.0, alias="interval",
        description="time between two publications; after one that takes longer, as long again, at most 5s",
    )
    keep: int = Field(default=8, ge=2, le=10_000, description="newest snapshots kept in the topic")
    archive: Archive | None = Field(
        default=None, description="older snapshots to keep, { every, keep }; none if not given"
    )
    pending_bytes: Annotated[int, Size(2**20)] = Field(
        default=64 * 2**20, description="unpublished round log and dead letters above which no round is opened"
    )


class Predict(Section):
    """The way predictions are written."""

    delivery: Literal["exactly_once", "at_least_once"] = Field(
        default="exactly_once",
        description="at_least_once has the lowest delay; after a failure a request may be answered twice",
    )
    accept_empty: bool = Field(
        default=False, description="answer rows that name none of the columns, from the columns' stand-ins alone"
    )


Topics = dict[str, Annotated[TopicSettings, BeforeValidator(_as_table)]]

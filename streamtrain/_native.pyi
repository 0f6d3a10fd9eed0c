"""
streamtrain's native code. `python -m tests.native.stub` writes its stub, _native.pyi.
"""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy
from numpy.typing import NDArray

SLOT_HEADER: Any

RANGE: Any

DEAD_LETTER_HEAD: Any

DEAD_LETTER_ROWS: Any

DEAD_LETTER_HEADER_SIZES: Any

MAX_WORKERS: int = 64

MAX_PARTITIONS: int = 4096

SCHEMA_ENTRY: int = -2

SCHEMA_TEXT_LIMIT: int = 262144

MAX_COLUMNS: int = 65535

MAX_CLASSES: int = 65535

DEAD_LETTER_KEY_BYTES: int = 4096

class Block:
    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def offset(self) -> int:
        """
        Offset in the slot; of a ragged block that of its ends, u32 [rows + 1].
        """

    @property
    def values(self) -> int:
        """Offset of a ragged block's values; 0 if it is not ragged."""

    @property
    def capacity(self) -> int:
        """Elements of all rows."""

    @property
    def ragged(self) -> bool: ...

class SlotLayout:
    @staticmethod
    def make(
        row_capacity: int,
        range_capacity: int,
        blocks: Sequence[tuple[str, str, int] | tuple[str, str, int, bool] | tuple[str, str, int, bool, int]],
    ) -> SlotLayout:
        """
        `blocks`: name, dtype, width of a row, whether it is ragged, elements there is room for at least.
        """

    @property
    def row_capacity(self) -> int: ...
    @property
    def range_capacity(self) -> int: ...
    @property
    def blocks(self) -> list[Block]: ...
    @property
    def slot_bytes(self) -> int: ...

MOMENTS: tuple[str, ...]

VOCABULARY_HEAD: tuple[str, ...]

PLATEAU: tuple[str, ...]

CACHE_LINE: int = 64

LOGIT_BINS: int = 1536

LOGIT_BINS_OF_ONE: int = 48

LOGIT_EVEN_TO: int = 12

LOGIT_MOMENTS: int = 3

TALLY_ENTRIES: int = 4096

TALLY_WIDTH: int = 3

DISTINCT: str = "distinct"

CURVES: str = "curves"

OPTIMIZER_STEPS: str = "optimizer.steps"

OUTER_VELOCITY: str = "outer.velocity."

OUTER_SETTINGS: str = "outer.settings"

SCHEDULE_STANDING: str = "schedule.standing"

WINDOWS_CLOSED: str = "window.closed"

def binary_curves(tally: object) -> tuple[float, float]:
    """Returns AUC and average precision; -1: full."""

def place(sizes: Sequence[int]) -> tuple[list[int], int]:
    """
    Places buffers one behind the other on cache lines, as a state's blocks lie.

    Returns their offsets, and where the last one ends.
    """

def state_rules() -> dict[str, tuple[str, ...]]:
    """Returns the dtypes that each rule can store, by the name of the rule."""

class StateBlockSpec:
    def __init__(
        self, name: str, group: str, rule: str, shape: Sequence[int], dtype: str = "", rows_of: str = ""
    ) -> None:
        """
        `dtype`: one the rule takes; empty: its first. `rows_of`: the block that says whose its rows are.
        """

class StateBlock:
    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def offset(self) -> int: ...
    @property
    def part_offset(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def bytes(self) -> int: ...

class PublishedLayout:
    """
    The blocks of a mean buffer. A block kept per worker is there once per worker, as
    `<block>@<worker>`, shape (1, ...).
    """

    @property
    def blocks(self) -> list[StateBlock]: ...
    @property
    def state_bytes(self) -> int: ...

class StateLayout:
    @staticmethod
    def make(blocks: Sequence[StateBlockSpec]) -> StateLayout:
        """
        Lays out the learned part, then the statistics part, each in the order given.
        """

    @property
    def blocks(self) -> list[StateBlock]: ...
    @property
    def learned_bytes(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def statistics_bytes(self) -> int: ...
    def published(self, workers: int) -> PublishedLayout: ...
    def begin_lineage(self, state: object, workers: int, mean: object) -> None:
        """
        Writes the mean buffer a lineage starts from: each published block has the values it has in `state`.
        """

def copy_changed(to: int, from_: int, size: int, most: int) -> int:
    """
    Copies between addresses; equal pages stay as they are. Returns the bytes written, and ends at `most`.
    """

def average(
    layout: StateLayout, start: int, workers: Sequence[tuple[int, float]], mean: int, first_moments: int = 0
) -> None:
    """
    Takes addresses: of the start, of (each worker's vector, its weight sum), of the mean, and of a statistics
    part whose moments replace the start's.
    """

def join(
    layout: StateLayout, start: int, each: Sequence[tuple[int, float]], joined: int, first_moments: int = 0
) -> float:
    """
    Joins contributions to one, which `average` takes as it takes each of them: the mean has the same bits.

    Takes addresses as `average` does, and that of a whole state of zeros, `joined`. Returns the weight sum.
    Raises UserMistake for a layout with blocks that are kept per worker.
    """

def kernels() -> list[tuple[str, str, str, list[str], bool]]:
    """
    (name, types, isa, arguments, host_only) of every kernel built into the module
    """

SOURCE_DIGEST: str = ...

def kernel_texts() -> dict[str, str]:
    """path -> text of the headers kernels are built from"""

def supported_isas() -> list[str]: ...
def select_isa(name: str) -> str: ...
def call_kernel(name: str, types: str, arguments: list[Any], isa: str = "") -> None: ...

class StepBlock:
    def __init__(self) -> None: ...
    @property
    def rows(self) -> int: ...
    @rows.setter
    def rows(self, arg: int, /) -> None: ...
    @property
    def learning_rate(self) -> float: ...
    @learning_rate.setter
    def learning_rate(self, arg: float, /) -> None: ...
    @property
    def loss_sum(self) -> float: ...
    @loss_sum.setter
    def loss_sum(self, arg: float, /) -> None: ...
    @property
    def objective_sum(self) -> float: ...
    @objective_sum.setter
    def objective_sum(self, arg: float, /) -> None: ...
    @property
    def weight_sum(self) -> float: ...
    @weight_sum.setter
    def weight_sum(self, arg: float, /) -> None: ...
    @property
    def active_rows(self) -> int: ...
    @active_rows.setter
    def active_rows(self, arg: int, /) -> None: ...
    @property
    def gradient_norm(self) -> float: ...
    @gradient_norm.setter
    def gradient_norm(self, arg: float, /) -> None: ...
    @property
    def not_finite(self) -> int: ...
    @not_finite.setter
    def not_finite(self, arg: int, /) -> None: ...
    @property
    def random(self) -> int: ...
    @random.setter
    def random(self, arg: int, /) -> None: ...
    @property
    def number(self) -> int: ...
    @number.setter
    def number(self, arg: int, /) -> None: ...
    @staticmethod
    def at(address: int) -> StepBlock: ...
    @property
    def address(self) -> int: ...

STEP_BYTES: int = 64

PLAN_MEMORIES: dict[str, int]

CHAIN_ROWS: int = 256

MAX_PLAN_THREADS: int = 64

PLAN_PHASES: dict[str, tuple[str, ...]]

class Plan:
    def forward(self, slot_address: int) -> None:
        """Runs the phase; UserMistake if the plan was not compiled for it."""

    def gradient(self, slot_address: int) -> None:
        """Runs the phase; UserMistake if the plan was not compiled for it."""

    def update(self, slot_address: int) -> None:
        """Runs the phase; UserMistake if the plan was not compiled for it."""

    def sum(self, slot_address: int) -> None:
        """Runs the phase; UserMistake if the plan was not compiled for it."""

    def evaluate(self, slot_address: int) -> None:
        """Runs the phase; UserMistake if the plan was not compiled for it."""

    def statistics(self, slot_address: int) -> None:
        """Runs the phase; UserMistake if the plan was not compiled for it."""

    def predict(self, slot_address: int) -> None:
        """Runs the phase; UserMistake if the plan was not compiled for it."""

    def train(self, slot_address: int) -> None:
        """Runs the phase; UserMistake if the plan was not compiled for it."""

    def objective(self, slot_address: int) -> None:
        """Runs the phase; UserMistake if the plan was not compiled for it."""

    @property
    def step(self) -> StepBlock: ...
    def begin_round(self) -> None: ...
    def end_round(self) -> None: ...
    @property
    def steps_ahead(self) -> int:
        """Steps that may be enqueued before collect()."""

    def enqueue(self, slot_address: int) -> None: ...
    def collect(self) -> int:
        """
        Waits for the enqueued steps; returns the address of their step blocks, in order.
        """

    def output(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None))]: ...
    @property
    def output_address(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def width(self) -> int: ...

    _held: Any
    _device_plan: Any

class CpuPlan(Plan):
    def __init__(
        self,
        phases: Mapping[
            str,
            Sequence[
                tuple[
                    bool,
                    Sequence[
                        tuple[
                            str,
                            str,
                            Sequence[tuple[tuple[int, int, int, int, int], Sequence[tuple[int, int, int, int, int]]]],
                            int,
                            int,
                        ]
                    ],
                ]
            ],
        ],
        workspace_bytes: int,
        constants: Sequence[tuple[int, bytes]],
        output_offset: int,
        rows: int,
        width: int,
        state: int,
        base: int,
        share: int,
        isa: str = "",
        outside: int = 0,
        tile_rows: int = 0,
        threads: int = 1,
        own_bytes: int = 0,
    ) -> None:
        """
        `phases`: the stretches of each, as PlanStretch, PlanCall and PlanArgument say.
        """

    def set_outside(self, at: int, call: Callable[[int, int], None]) -> None:
        """
        Sets the call out of the plan of that number; it gets the rows present and the slot's address.
        """

    @property
    def work_address(self) -> int: ...

class ForeignPlan(Plan):
    def __init__(
        self,
        rows: int,
        width: int,
        phases: Mapping[str, Callable[[int], None]],
        begin_round: Callable[[], None],
        end_round: Callable[[], None],
        enqueue: Callable[[int], None] | None = None,
        collect: Callable[[], int] | None = None,
        steps_ahead: int = 1,
    ) -> None: ...

WINDOW_ROWS: int = 10000

WINDOWS: int = 64

class Stop(enum.IntEnum):
    RUN = 0

    DRAIN = 1

    LEAVE = 2

class CloseReason(enum.IntEnum):
    FULL = 0

    INTERVAL = 1

    DRAINED = 2

    END = 3

    PUBLICATION = 4

class Rejected(enum.IntEnum):
    NO = 0

    NOT_FINITE = 1

    CRASHED = 2

class Arena:
    @staticmethod
    def create(
        workers: int,
        averaging_frequency: int,
        slot_count: int,
        slot_layout: SlotLayout,
        state_layout: StateLayout,
        dead_letter_bytes: int = 16777216,
    ) -> Arena: ...
    @staticmethod
    def attach(descriptor: int) -> Arena: ...
    @property
    def descriptor(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def slot_count(self) -> int: ...
    @property
    def slot_layout(self) -> SlotLayout: ...
    @property
    def state_layout(self) -> StateLayout: ...
    def mean_address(self, buffer: int) -> int: ...
    def slot_address(self, slot: int) -> int: ...
    def slot_result(self, slot: int) -> tuple[float, float, int]:
        """Returns loss, weight, and a value of Rejected."""

    def progress(self) -> dict[str, int]: ...

class WorkerLook:
    @property
    def round(self) -> int: ...
    @property
    def slot(self) -> int:
        """Slot in hand; -1: none."""

class SupervisorEnd:
    def __init__(self, arena: Arena) -> None: ...
    def tell(self, stop: Stop) -> None: ...
    def worker(self, worker: int) -> WorkerLook: ...
    def clear_dead(self, worker: int) -> None:
        """Clears up behind a worker, once its process is dead and waited for."""

    def reject(self, slot: int, worker: int) -> None:
        """Rejects a slot while its worker is dead."""

class CoordinatorEnd:
    def __init__(self, arena: Arena) -> None: ...
    def begin(
        self,
        *,
        round: int,
        learning_rate: float,
        seed: int = 0,
        rows_seen: int = 0,
        row_bound: int = -1,
        positions: Sequence[tuple[int, int, int]] = [],
        joins: bool = False,
    ) -> None:
        """
        Sets the state that the run continues from. `positions` are (partition, offset, row). `joins`: a round
        ends with its workers' joined contribution in the mean's place, not with a mean.
        """

    def start(self) -> None:
        """Sends READY."""

    def progress(self) -> dict[str, int]: ...
    def mean_address(self, buffer: int) -> int: ...
    def beat(self) -> None: ...
    def stop(self) -> Stop: ...
    def hold(self, held: bool) -> None:
        """Keeps ingest from opening a round."""

    def begin_round(self, round: int, seed: int) -> None:
        """
        Lets workers that join begin the next round, whose start is in place, as this round of the lineage.
        """

    def bound_rounds(self, bound: int) -> None:
        """
        Keeps ingest from opening a round from this number on; 0: any may open.
        """

    def allow_windows(self, below: int) -> None:
        """Lets windows below this number close."""

    def window_address(self, number: int) -> int: ...
    def release_slots(self, below: int) -> None: ...
    def pin_newest(self) -> tuple[int, int]:
        """Returns (buffer, round)."""

    def unpin(self) -> None: ...
    def wait_round(self, round: int, timeout_s: float) -> bool: ...
    def publication_due(self, due_ns: int) -> None:
        """
        Sets the time of a publication, monotonic; 0: no round is closed for one.
        """

    def wait_publication(self, due_ns: int, timeout_s: float) -> bool: ...
    def dead_letters(self, last_round: int) -> tuple[bytes, int]:
        """Returns the entries that are not published, and their number."""

    def schemas(self, last_round: int) -> bytes:
        """Returns those of these entries that are schemas."""

    def release_dead_letters(self, bytes: int, entries: int) -> None:
        """Releases entries that are published."""

    @property
    def dead_letter_bytes_waiting(self) -> int:
        """Bytes that wait for their publication."""

class Heartbeat:
    """
    A thread that beats, from now to stop(), whatever holds this program's Python up.
    """

    def __init__(self, end: CoordinatorEnd) -> None: ...
    def stop(self) -> None: ...

class IngestEnd:
    def __init__(self, arena: Arena) -> None: ...
    def wait_ready(self, timeout_s: float) -> bool: ...
    def stop(self) -> Stop: ...
    def fill_round(self, round: int, first_slot: int, rows: Sequence[int], closed: bool = True) -> None:
        """
        Fills slots first_slot.. with rows[i] rows each; no more come if it is closed.
        """

class Silence:
    def __init__(self) -> None: ...
    def lasts(self, beat_ns: int, now_ns: int) -> bool: ...

ROUND_RECORD: Any

SLOT_RECORD: Any

def first_moments(layout: StateLayout, slot_layout: SlotLayout, slots: Sequence[int], base: int) -> None:
    """
    Writes the first mean and variance of each column, from the slots at these addresses, into a statistics
    part. `base` is the address of that part.
    """

class WorkerStatus(enum.IntEnum):
    WORKING = 0

    FINISHED = 1

    LEAVE = 2

    DIVERGED = 3

class Worker:
    def __init__(self, arena: Arena, worker: int) -> None: ...
    @property
    def round(self) -> int:
        """Round that is begun."""

    @property
    def state_address(self) -> int: ...
    @property
    def share_address(self) -> int: ...
    @property
    def base_address(self) -> int: ...
    def follow(self, rate_of: Callable[[int, float], float]) -> None: ...
    def score_means(self, plan: Plan, state: int, base: int, share: int) -> None: ...
    def run_closed_round(self, plan: Plan) -> None: ...
    def run(self, plan: Plan, timeout_s: float) -> WorkerStatus: ...

class ContributionFold:
    """Folds contributions into an arena's newest mean, as its next round."""

    def __init__(self, arena: Arena) -> None: ...
    def fold(self, contributions: Sequence[tuple[int, float]]) -> bool:
        """
        Takes the address of each joined state, and its weight sum. Returns whether a window closed.
        """

class LogSource:
    """
    The records that ranges of a round log touch.

    `open` gives the source of a partition from an offset on.
    """

    def __init__(self, open: Callable[[int, int], Source]) -> None: ...

class LogStatus(enum.IntEnum):
    FILLED = 0

    LACKING = 1
    """A partition holds fewer records than the range says."""

    SILENT = 2

class LogFiller:
    """Slots with the rows that a log gives them."""

    def __init__(
        self, arena: Arena, source: LogSource, silence_s: float, format: str | Mapping[str, Any], plan: DecodePlan
    ) -> None: ...
    def fill(self, slot: int, ranges: bytes) -> tuple[LogStatus, int, int]:
        """
        Returns the ending, the slot's rows, and the number of the range that was not filled.
        """

class RoundLogThread:
    def __init__(self, end: CoordinatorEnd) -> None: ...
    def start(self) -> None: ...
    def waiting_bytes(self) -> int: ...
    def take(self) -> tuple[int, int, bytes, bytes, bytes]:
        """Returns (last round, newest timestamp in ms, rounds, slots, ranges)."""

def arm_failpoint(name: str, hit: int, signal: int) -> None: ...

class Source:
    pass

class KafkaSource(Source):
    def __init__(
        self, consumer: KafkaConsumer, topic: str, end_offsets: Sequence[tuple[int, int]], bounded: bool
    ) -> None: ...
    def read_with(self, consumer: KafkaConsumer) -> None:
        """
        Reads with it from now on, in the place of the one before; Ingest.rewind() comes next.
        """

    @property
    def ended(self) -> bool: ...

class MemorySource(Source):
    """Records that a program puts in."""

    def __init__(self) -> None: ...
    def put(self, record: bytes, timeout_s: float, partition: int = -1, offset: int = -1, span: int = 1) -> bool:
        """
        Waits while too much lies there; False after the time-out, or when nobody takes any more.

        By default the record is of one partition, its offset its number; `span`: offsets it takes up.
        """

    @property
    def starts(self) -> list[tuple[int, int]]:
        """Partitions and offsets, once a loop has started."""

    def end_round(self) -> None:
        """
        Ends a round: records put before and after this call belong to different rounds.
        """

    def end(self) -> None: ...
    def close(self) -> None:
        """Ends it for good: nobody takes any more."""

class IteratorSource(Source):
    """Records of one partition, offset and value, taken one after the other."""

    def __init__(self, records: Iterator[tuple[int, bytes]]) -> None: ...

class IngestStatus(enum.IntEnum):
    WORKING = 0

    ENDED = 1

    LEAVE = 2

    WAITING = 3
    """
    As WORKING, but some partition's next record needs a schema that is not known yet.
    """

    ROUND_ENDED = 4
    """As WORKING: the source has ended the round that was open."""

class RoundCutter:
    """
    The state that the ingest threads share: the numbers of slots and the ends of rounds.
    """

    def __init__(
        self, arena: Arena, *, round_interval_ns: int = -1, batch_growth: int = 0, min_batch_rows: int = 1
    ) -> None: ...
    @property
    def partitions(self) -> int:
        """Partitions that the run began with."""

    def leave(self) -> None:
        """Makes every thread's run() return LEAVE."""

class Ingest:
    """The loop of one thread; all are built before the first start()."""

    def __init__(
        self, cutter: RoundCutter, source: Source, format: str | Mapping[str, Any], plan: DecodePlan
    ) -> None: ...
    def start(self) -> None: ...
    def owns(self, partition: int) -> bool:
        """No other thread reads the partition."""

    def add_partition(self, partition: int) -> None: ...
    def rewind(self) -> None:
        """Lets the source begin again where this has got to."""

    def run(self, timeout_s: float) -> IngestStatus: ...

class KafkaFailure(RuntimeError):
    """args: (librdkafka error code, text)."""

    args: tuple[int, str]

def kafka_load(path: str) -> None: ...
def kafka_version() -> str: ...
def kafka_error_name(code: int) -> str: ...
def kafka_error_text(code: int) -> str: ...

class KafkaResponse(enum.IntEnum):
    """The response to an error code: native/kafka/response.h."""

    WAIT = 0

    MISSING = 1

    RENEW = 2

    REFUSE = 3

    DENIED = 4

class KafkaCode(enum.IntEnum):
    """Error codes of librdkafka itself that we name."""

    TRANSPORT = -195

    PARTITION_EOF = -191

    ALL_BROKERS_DOWN = -187

    QUEUE_FULL = -184

    TIMED_OUT = -185

    SSL = -181

    INCONSISTENT = -149

    FENCED = -144

def kafka_response(code: int) -> KafkaResponse: ...
def kafka_is_passing(code: int) -> bool: ...
def kafka_responses() -> list[tuple[int, str, KafkaResponse]]:
    """Returns (code, name, response) of every code that the table names."""

class KafkaPurpose(enum.Enum):
    """The purpose of a client: native/kafka/settings.h."""

    INGEST = 0

    READ = 1

    REPLAY = 2

    FOLLOW = 3

    SERVE = 4

    ANSWERS = 5

    REQUESTS = 6

    REQUESTS_ONCE = 7

    GROUP = 8

    HOST = 9

    PUBLISH = 10

    CONTRIBUTE = 11

    ANSWER = 12

    ANSWER_ONCE = 13

    RESEND = 14

    WRITE = 15

    STREAM = 16

    ADMIN = 17

    START = 18

def kafka_client_settings(
    purpose: KafkaPurpose, given: Sequence[tuple[str, str]], own: Sequence[tuple[str, str]], clients: int = 1
) -> list[tuple[str, str]]:
    """
    Returns a client's settings: our defaults, under `given`, under what is not the user's, under `own`.

    Of so many `clients` each has its share of the memory for messages.
    """

def kafka_settings() -> list[tuple[str, str | None, str, list[KafkaPurpose], str]]:
    """
    Returns the whole table: property, value (None: each client's own), given | fixed | owned, who has it, why.
    """

class KafkaConsumer:
    def __init__(self, settings: Sequence[tuple[str, str]]) -> None: ...
    def assign(self, topic: str, offsets: Sequence[tuple[int, int]]) -> None: ...
    def subscribe(self, topic: str, reads: bool = True) -> None: ...
    def assignment(self) -> list[int]: ...
    def consume(
        self, capacity: int, timeout_ms: int
    ) -> list[tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]], int, str]]: ...
    def pause(self, partitions: Sequence[int]) -> None: ...
    def resume(self, partitions: Sequence[int]) -> None: ...
    def seek(self, offsets: Sequence[tuple[int, int]], timeout_ms: int) -> None: ...
    def position(self, partitions: Sequence[int]) -> list[tuple[int, int]]: ...
    def committed(self, partitions: Sequence[int], timeout_ms: int) -> list[tuple[int, int]]: ...
    def rewind_to_committed(self, otherwise: int, timeout_ms: int) -> None: ...
    def commit(self, offsets: Sequence[tuple[int, int]]) -> None: ...
    def is_deaf(self, timeout_ms: int) -> bool: ...
    def group_metadata(self) -> bytes: ...
    def partition_count(self, topic: str, timeout_ms: int) -> int: ...
    def topic_id(self, topic: str, timeout_ms: int) -> str: ...
    def watermarks(self, topic: str, partition: int, timeout_ms: int) -> tuple[int, int]: ...
    def bounds(self, topic: str, timeout_ms: int) -> list[tuple[int, int]]: ...
    def drain_events(self) -> list[tuple[int, int, str, str]]: ...
    def close(self) -> None: ...

class KafkaProducer:
    def __init__(self, settings: Sequence[tuple[str, str]]) -> None: ...
    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = -1,
        headers: Sequence[tuple[str, bytes | None]] = [],
        note: bool = False,
    ) -> int: ...
    @property
    def noted_offset(self) -> int: ...
    def poll(self, timeout_ms: int) -> int: ...
    def flush(self, timeout_ms: int) -> int: ...
    def partition_count(self, topic: str, timeout_ms: int) -> int: ...
    def topic_id(self, topic: str, timeout_ms: int) -> str: ...
    def watermarks(self, topic: str, partition: int, timeout_ms: int) -> tuple[int, int]: ...
    def bounds(self, topic: str, timeout_ms: int) -> list[tuple[int, int]]: ...
    def drain_events(self) -> list[tuple[int, int, str, str]]: ...
    def close(self) -> None: ...

class KafkaNext(enum.Enum):
    """The next step after an outcome: native/kafka/transaction.h."""

    ON = 0

    AGAIN = 1

    ABORT = 2

    RENEW = 3

class KafkaOutcome:
    """
    The outcome of a call of the transactional interface; code 0 is success.
    """

    def __init__(
        self, code: int, retriable: bool = False, requires_abort: bool = False, fatal: bool = False, text: str = ""
    ) -> None: ...
    @property
    def code(self) -> int: ...
    @property
    def retriable(self) -> bool: ...
    @property
    def requires_abort(self) -> bool: ...
    @property
    def fatal(self) -> bool: ...
    @property
    def text(self) -> str: ...
    def next(self, over: bool) -> KafkaNext:
        """`over`: the time in which the call may be made again has passed."""

class KafkaEnding(enum.Enum):
    """
    The end of a transaction; UNKNOWN: committed or not, and the producer has been given up.
    """

    COMMITTED = 0

    ABORTED = 1

    UNKNOWN = 2

class KafkaTransactionEnd:
    @property
    def ending(self) -> KafkaEnding: ...
    @property
    def why(self) -> KafkaOutcome: ...

class KafkaTransactionalProducer:
    """Makes transactions by the rules of native/kafka/transaction.h."""

    def __init__(self, settings: Sequence[tuple[str, str]]) -> None: ...
    def prepare(self) -> KafkaOutcome:
        """Tries once for a producer that may begin; code 0 when there is one."""

    def begin(self) -> KafkaOutcome: ...
    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = -1,
        headers: Sequence[tuple[str, bytes | None]] = [],
        note: bool = False,
    ) -> int: ...
    def poll(self, timeout_ms: int) -> int: ...
    def flush(self) -> int: ...
    def commit(
        self, topic: str = "", offsets: Sequence[tuple[int, int]] = [], group_metadata: bytes = ..., identity: str = ""
    ) -> KafkaTransactionEnd:
        """
        Commits with the group's `offsets` in `topic`, if there are any, and `identity` beside them.
        """

    def fail(self, why: KafkaOutcome) -> KafkaTransactionEnd:
        """Ends the transaction that `why` does not let go on."""

    def abort(self, reason: str) -> KafkaTransactionEnd:
        """Ends a transaction that is not wanted any more."""

    @property
    def noted_offset(self) -> int: ...
    def drain_events(self) -> list[tuple[int, int, str, str]]: ...
    def close(self) -> None: ...

def kafka_not_queued(code: int, topic: str) -> KafkaOutcome:
    """Returns the outcome of a produce() that gave `code`."""

class PatternCode(enum.IntEnum):
    """The action of a step of a pattern."""

    LETTERS = 0

    SPLIT = 1

    JUMP = 2

    BEGIN = 3

    END = 4

    OPEN = 5

    CLOSE = 6

    MATCH = 7

def murmur3(text: bytes, seed: int, bits: int = 32) -> int: ...
def fit_picture(
    points: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order="C", device="cpu", writable=False)],
    fitted: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order="C", device="cpu")],
) -> None: ...
def picture_size(encoded: bytes) -> tuple[int, int] | None:
    """
    Returns height and width in the head of a JPEG or a PNG; None if it has none.
    """

def sound_head(encoded: bytes) -> tuple[int, int, int] | None:
    """
    Returns samples a second, channels and samples of each (0: unknown) in a WAV or a FLAC; else None.
    """

def decoder_formats() -> list[str]: ...
def column_kinds() -> list[str]: ...
def cell_transforms() -> list[str]: ...

class DecodePlan:
    def __init__(
        self,
        columns: list[dict[str, Any]],
        short_columns: Sequence[int],
        layout: SlotLayout,
        constants: dict[str, float],
        transforms: dict[str, Any] | None = None,
        refuses_empty: bool = False,
    ) -> None:
        """
        `constants`: the value in every row, of each block that no column gives.
        """

    @property
    def layout(self) -> SlotLayout: ...

class RowTally:
    """
    The outcomes of rows. `newest_event_time_ms` is -1 if no trained row has an event time.
    """

    @property
    def trained(self) -> int: ...
    @property
    def dead(self) -> int: ...
    @property
    def filtered(self) -> int: ...
    @property
    def newest_event_time_ms(self) -> int: ...
    @property
    def dead_rows(self) -> list[tuple[int, int, str, str, bool]]: ...
    @property
    def filtered_rows(self) -> list[tuple[int, int, int]]: ...

class RecordAround:
    """
    The message metadata of a record: partition, offset, timestamp, key and headers.
    """

    def __init__(
        self,
        partition: int,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
    ) -> None: ...

class BatchFiller:
    """
    Rows of records, or of Python, into slots of the plan's layout. One thread at a time.
    """

    def __init__(self, format: str | Mapping[str, Any], plan: DecodePlan) -> None: ...
    def open(self, slot: object) -> None:
        """Opens an empty batch in these bytes."""

    def fill(
        self, record: bytes, from_row: int = 0, until: int | None = None, around: RecordAround | None = None
    ) -> bool:
        """
        Takes a record's rows; False if the batch has `until` rows, or all it can hold, before the record's end.
        """

    def more(self, until: int | None = None) -> bool:
        """Goes on with that record."""

    def fill_rows(self, rows: object, first: int = 0, until: int | None = None) -> bool:
        """
        Takes a dict, a list of values or a list of rows from the `first` on, as fill().
        """

    def close(self) -> int:
        """
        Ends the batch: its slot holds the number of its rows and is zero behind them. Returns that number.
        """

    def take_tally(self) -> RowTally:
        """
        Returns the tally of rows passed since the batch was opened or the last tally was taken.

        The event time is that of the batch.
        """

    def count(
        self, records: list[bytes], from_row: int = 0, most: int | None = None, around: list[RecordAround] | None = None
    ) -> RowTally:
        """
        Returns the tally of all rows of these records, up to the first `most` that can be trained.

        The first record starts at `from_row`. No rows are kept, and no batch is open afterwards.
        """

    @property
    def rows(self) -> int:
        """Rows in the batch."""

    @property
    def record_rows(self) -> int:
        """Rows of the record at hand, passed so far."""

class CsvCell(enum.Enum):
    """
    The type that a cell of a line is read as.

    NUMBER: a number, if it is one. TIME: a number, or ISO 8601 as ms.
    """

    TEXT = 0

    NUMBER = 1

    TIME = 2

MISSING_WORDS: list[str]

def csv_lines(text: bytes, most: int, last: bool, delimiter: str, quote: str, skip_space: bool) -> tuple[int, int]:
    """
    Returns how many whole lines a text begins with, up to `most`, and their bytes.

    `last`: nothing comes behind it. `skip_space`: spaces before a cell are none of it.
    """

class RecordEncoder:
    """
    Python rows to records of one format. One thread at a time.

    `columns` are Schema.native_columns(); `convert(value, column)` gives a plain value for one of another type,
    or None. Each call raises ValueError((row, column, expected, got)) for a cell its column cannot take.
    """

    def __init__(
        self, format: str | Mapping[str, Any], columns: list[dict[str, Any]], convert: Callable[[Any, int], Any]
    ) -> None: ...
    def encode_row(self, row: dict[str, Any]) -> bytes | None:
        """Returns None if the dict is no row but columns."""

    def read_rows(self, rows: list[dict[str, Any]]) -> None: ...
    def read_columns(self, columns: dict[str, Any], rows: int) -> None: ...
    def read_csv(
        self, text: bytes, order: Sequence[tuple[int, CsvCell]], rows: int, delimiter: str, quote: str, skip_space: bool
    ) -> None:
        """
        Reads `rows` lines. `order`: of each cell its column, below 0 of none, and the type it is read as.

        A line that is none is a mistake without a column's name.
        """

    def encode(self, first: int, count: int) -> bytes:
        """Returns a record of `count` of the rows read last."""

    def encode_chosen(self, rows: Sequence[int]) -> bytes: ...
    def clear(self) -> None:
        """Lets go of the arrays read."""

    @property
    def most_rows(self) -> int:
        """The largest number of rows in one record."""

class RowReader:
    def __init__(
        self, format: object, columns: list[dict[str, Any]], short_columns: Sequence[int], layout: SlotLayout
    ) -> None: ...
    def read(
        self, record: bytes, around: RecordAround | None = None
    ) -> tuple[list[dict[str, Any]], list[tuple[int, int, str, str, bool]]]:
        """
        Returns the rows that can be read, and (row_from, row_to, path, reason, remainder) of the others.
        """

class BodyForm(enum.Enum):
    """
    The form of the answer to a body: one row's object, an array, or an error as an object.
    """

    ROW = 0

    ROWS = 1

    BROKEN = 2

    TOO_LARGE = 3

class BodyScorer:
    """
    Answers bodies of JSON with one snapshot: bytes, slot, plan, JSON. One thread at a time.
    """

    def __init__(
        self,
        plan: Plan,
        decode_plan: DecodePlan,
        heads: Sequence[tuple[str, int, Sequence[str], bool]],
        most_bytes: int,
    ) -> None: ...
    def score(self, body: bytes, released: bool) -> tuple[bytes, BodyForm, int, int]:
        """
        Returns (text, form, rows, errors); an answer of more than `most_bytes` is refused.

        `released`: without the GIL.
        """

class RequestScorer:
    """
    Answers requests with one snapshot: bytes, slot, plan, JSON. One thread at a time.
    """

    def __init__(
        self,
        plan: Plan,
        decode_plan: DecodePlan,
        format: str | Mapping[str, Any],
        heads: Sequence[tuple[str, int, Sequence[str], bool]],
        version: int,
        digest: str,
    ) -> None: ...
    @property
    def version(self) -> int: ...
    def score(
        self, topic: str, requests: Sequence[bytes | None], around: Sequence[RecordAround] = []
    ) -> list[tuple[bytes, str, int, int]]:
        """
        Returns (body, why no row was answered or empty, rows, errors) of as many requests as are answered at
        once. They are answered as if they stood in `topic` at partition 0 from offset 0 on, or in the messages
        `around`.
        """

class Predictor:
    """
    One thread runs it; serve(), counters() and drain_events() may be called by others.
    """

    def __init__(
        self,
        consumer: Sequence[tuple[str, str]],
        producer: Sequence[tuple[str, str]],
        requests: str,
        predictions: str,
        exactly_once: bool,
        until_end: bool,
        traced: bool = False,
    ) -> None: ...
    def serve(self, scorers: Sequence[tuple[str, RequestScorer]]) -> None:
        """
        Serves scorers by name, from the next batch on; the first answers a request that names none.

        ValueError for a name that is there twice.
        """

    def run(self, milliseconds: int) -> bool:
        """Works for about that long; True when until_end has been reached."""

    def look_again(self) -> None:
        """Looks again at requests that wait for a schema. Between two run()s."""

    def finish(self, timeout_ms: int) -> bool:
        """Delivers what is on its way; False: not all arrived in time."""

    def close(self, timeout_ms: int) -> bool:
        """Finishes, then commits and leaves the group."""

    def drain_traced(self) -> tuple[list[tuple[bytes, bytes, int, int, int, int, int, int, int, bytes]], int]:
        """
        Returns answered requests whose header traceparent says sampled, and how many more there were.

        Between two run()s, where `traced`. Each: traceparent, tracestate, partition, offset, when its batch
        was taken and its answer delivered in ns since 1970, version, rows, rows with errors, why no row was
        answered.
        """

    def drain_events(self) -> list[tuple[int, int, str, str]]: ...
    def counters(self) -> dict[str, int]: ...

class RowScorer:
    """
    Predicts Python rows with one snapshot: slot, plan, answers. One thread at a time.
    """

    def __init__(
        self, plan: Plan, decode_plan: DecodePlan, heads: Sequence[tuple[str, int, Sequence[str], bool]], free_from: int
    ) -> None: ...
    def score_rows(self, rows: dict[str, Any] | list[dict[str, Any]]) -> tuple[Any, list[tuple[int, str, str]]]:
        """
        Returns (an answer or a list of them, [(row, path, reason)]); None is the answer of a row that failed.
        """

    def score_columns(self, columns: dict[str, Any]) -> tuple[list[Any], list[tuple[int, str, str]]]:
        """
        Does the same for lists and 1-dimensional arrays of numbers of one length.
        """

    def outputs_of_columns(self, columns: dict[str, Any]) -> tuple[bytes, list[tuple[int, str, str]]]:
        """
        Does the same as (rows, width) float64, without those rows that failed.
        """

"""streamtrain's native code. Kept by hand; tests/architecture compares it with the built module."""

import builtins
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# memory: slot and state layouts

# structs, as numpy.dtype() takes them
SLOT_HEADER: Any
RANGE: Any
DEAD_LETTER_HEAD: Any  # what an entry of the dead letters begins with
DEAD_LETTER_ROWS: Any  # ... each of its ranges of rows ...
DEAD_LETTER_HEADER_SIZES: Any  # ... and each of its headers
ROUND_RECORD: Any  # of the round log
SLOT_RECORD: Any
MAX_WORKERS: int
MAX_PARTITIONS: int
SCHEMA_ENTRY: int
SCHEMA_TEXT_LIMIT: int
MAX_COLUMNS: int
MAX_CLASSES: int
DEAD_LETTER_KEY_BYTES: int

class Block:
    name: str
    dtype: str
    width: int
    offset: int   # of a ragged one that of its ends, u32 [rows + 1]
    values: int   # offset of its values; 0 where it is not ragged
    capacity: int   # elements of all rows
    ragged: bool

_Format = str | Mapping[str, Any]   # a name, or {"name": ...} with options

class SlotLayout:
    row_capacity: int
    range_capacity: int
    blocks: list[Block]
    slot_bytes: int
    @staticmethod
    def make(
        row_capacity: int, range_capacity: int,
        blocks: Sequence[tuple[str, str, int] | tuple[str, str, int, bool] | tuple[str, str, int, bool, int]],
    ) -> SlotLayout: ...   # name, dtype, width of a row, whether it is ragged, elements there is room for at least

# state: rules, where blocks lie

CACHE_LINE: int
OPTIMIZER_STEPS: str
MOMENTS: tuple[str, ...]  # words of a row of a `moments` block
LOGIT_BINS: int  # of a binary model's scores (native/base/logit_bins.h)
LOGIT_BINS_OF_ONE: int
LOGIT_EVEN_TO: int
LOGIT_MOMENTS: int
VOCABULARY_HEAD: tuple[str, ...]  # words of a vocabulary's head
PLATEAU: tuple[str, ...]  # words of a `plateau` block
OUTER_VELOCITY: str
OUTER_SETTINGS: str
SCHEDULE_STANDING: str
WINDOWS_CLOSED: str
TALLY_ENTRIES: int  # distinct logits (native/base/tally.h)
TALLY_WIDTH: int
DISTINCT: str  # ends of the names of a tally and of a closed window's figures of it
CURVES: str
WINDOW_ROWS: int  # of a window, at the least
WINDOWS: int  # in the ring of closed ones

def place(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Offsets of buffers one behind the other on cache lines, as a state's blocks lie, and where the last one ends."""

def state_rules() -> dict[str, tuple[str, ...]]:
    """Returns the dtypes that each rule can store, by the name of the rule."""

class StateBlock:
    name: str
    group: str
    rule: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    part_offset: int
    count: int
    bytes: int

class PublishedLayout:
    """A mean buffer's blocks. Blocks kept per worker stand once per worker, as `<block>@<worker>`, shape (1, ...)."""
    blocks: list[StateBlock]
    state_bytes: int

class StateBlockSpec:
    def __init__(
        self, name: str, group: str, rule: str, shape: Sequence[int], dtype: str = "", rows_of: str = ""
    ) -> None:
        """`dtype`: one the rule takes; "": the first of them. `rows_of`: the block that says whose its rows are."""

class StateLayout:
    blocks: list[StateBlock]
    learned_bytes: int
    state_bytes: int
    statistics_bytes: int
    @staticmethod
    def make(blocks: Sequence[StateBlockSpec]) -> StateLayout:
        """The learned part, then the statistics part, each in the order given."""
    def published(self, workers: int) -> PublishedLayout: ...
    def begin_lineage(self, state: Any, workers: int, mean: Any) -> None:
        """Writes the mean buffer a lineage starts from: every published block has what its block has in `state`."""

def copy_changed(to: int, from_: int, size: int, most: int) -> int:
    """Addresses; pages that are equal stay as they are. Bytes written, and no more once `most` are."""

def binary_curves(tally: Any) -> tuple[float, float]: ...  # AUC and average precision; -1: full
def average(
    layout: StateLayout, start: int, workers: Sequence[tuple[int, float]], mean: int, first_moments: int = 0
) -> None:
    """Addresses of the start, of (each worker's vector, its weight sum), of the mean, and of a statistics part whose
    moments take the place of the start's."""

def first_moments(layout: StateLayout, slot_layout: SlotLayout, slots: Sequence[int], base: int) -> None:
    """Writes the first mean and variance of each column, from the slots at these addresses, into a statistics part.

    `base` is the address of that part.
    """

# engine: kernels, instruction sets, compiled plans

def kernels() -> list[tuple[str, str, str, list[str], bool]]: ...
SOURCE_DIGEST: str

def kernel_texts() -> dict[str, str]: ...
def supported_isas() -> list[str]: ...
def select_isa(name: str) -> str: ...
def call_kernel(name: str, types: str, arguments: list[Any], isa: str = "") -> None: ...

PLAN_MEMORIES: dict[str, int]  # where an argument of a call lies
CHAIN_ROWS: int  # of float32 sums over rows (native/base/chain.h)
MAX_PLAN_THREADS: int
PLAN_PHASES: dict[str, tuple[str, ...]]   # with the phases that each is in one: most are one, themselves
STEP_BYTES: int

class StepBlock:
    rows: int
    learning_rate: float
    loss_sum: float
    objective_sum: float
    weight_sum: float
    active_rows: int
    gradient_norm: float
    not_finite: int
    random: int
    number: int
    address: int
    def __init__(self) -> None: ...
    @staticmethod
    def at(address: int) -> StepBlock: ...

class Plan:
    _held: Any          # kept alive with the plan
    _device_plan: Any   # of the CUDA backend, for tests and benches
    step: StepBlock
    rows: int
    width: int
    output_address: int
    steps_ahead: int    # that may be enqueued before collect()
    def begin_round(self) -> None: ...
    def end_round(self) -> None: ...
    def forward(self, slot_address: int) -> None: ...     # a phase; UserMistake where it was not compiled for it
    def gradient(self, slot_address: int) -> None: ...
    def update(self, slot_address: int) -> None: ...
    def sum(self, slot_address: int) -> None: ...
    def train(self, slot_address: int) -> None: ...
    def objective(self, slot_address: int) -> None: ...
    def evaluate(self, slot_address: int) -> None: ...
    def statistics(self, slot_address: int) -> None: ...
    def predict(self, slot_address: int) -> None: ...
    def enqueue(self, slot_address: int) -> None: ...
    def collect(self) -> int:
        """Waits for the enqueued steps; the address of their step blocks, in order."""

    def output(self) -> NDArray[np.float32]: ...

# kernel, types, (memory, bits, bytes of a row, offset in a thread's own memory or -1) of each argument; with no kernel
# the number of a call out of the plan
_PlanCalls = Sequence[tuple[str, str, Sequence[tuple[int, int, int, int]], int]]
_PlanStretches = Sequence[tuple[bool, _PlanCalls]]   # whether its calls are made tile by tile

class CpuPlan(Plan):
    def __init__(
        self, phases: Mapping[str, _PlanStretches], workspace_bytes: int,
        constants: Sequence[tuple[int, bytes]], output_offset: int, rows: int, width: int, state: int, base: int,
        share: int, isa: str = "", outside: int = 0, tile_rows: int = 0, threads: int = 1, own_bytes: int = 0,
    ) -> None: ...
    work_address: int
    def set_outside(self, at: int, call: Callable[[int, int], None]) -> None:
        """The call out of the plan of that number; it gets the rows present and the slot's address."""

class ForeignPlan(Plan):
    def __init__(
        self, rows: int, width: int, phases: Mapping[str, Callable[[int], None]], begin_round: Callable[[], None],
        end_round: Callable[[], None], enqueue: Callable[[int], None] | None = None,
        collect: Callable[[], int] | None = None, steps_ahead: int = 1,
    ) -> None: ...

# ring: the arena shared by all processes of a run, and its ends, one for each role

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
    descriptor: int
    address: int
    bytes: int
    workers: int
    slot_count: int
    slot_layout: SlotLayout
    state_layout: StateLayout
    @staticmethod
    def create(
        workers: int, averaging_frequency: int, slot_count: int, slot_layout: SlotLayout, state_layout: StateLayout,
        dead_letter_bytes: int = ...,
    ) -> Arena: ...
    @staticmethod
    def attach(descriptor: int) -> Arena: ...
    def mean_address(self, buffer: int) -> int: ...
    def slot_address(self, slot: int) -> int: ...
    def slot_result(self, slot: int) -> tuple[float, float, int]: ...  # loss, weight, Rejected
    def progress(self) -> dict[str, int]: ...

class WorkerLook:
    round: int
    slot: int  # in hand, -1 none

class SupervisorEnd:
    def __init__(self, arena: Arena) -> None: ...
    def tell(self, stop: Stop) -> None: ...
    def worker(self, worker: int) -> WorkerLook: ...
    def clear_dead(self, worker: int) -> None:
        """Once its process is dead and waited for."""
    def reject(self, slot: int, worker: int) -> None:
        """While the slot's worker is dead."""

class CoordinatorEnd:
    dead_letter_bytes_waiting: int  # for their publication
    def __init__(self, arena: Arena) -> None: ...
    def begin(
        self, *, round: int, learning_rate: float, seed: int = 0, rows_seen: int = 0, row_bound: int = -1,
        positions: Sequence[tuple[int, int, int]] = ...,
    ) -> None:
        """Sets the state that the run continues from. `positions` are (partition, offset, row)."""
    def start(self) -> None:
        """READY."""
    def progress(self) -> dict[str, int]: ...
    def mean_address(self, buffer: int) -> int: ...
    def beat(self) -> None: ...
    def stop(self) -> Stop: ...
    def hold(self, held: bool) -> None:
        """Ingest opens no round."""
    def bound_rounds(self, bound: int) -> None:
        """Ingest opens no round from this number on; 0: any."""
    def allow_windows(self, below: int) -> None: ...  # those below this number may close
    def window_address(self, number: int) -> int: ...
    def release_slots(self, below: int) -> None: ...
    def pin_newest(self) -> tuple[int, int]: ...  # (buffer, round)
    def unpin(self) -> None: ...
    def wait_round(self, round: int, timeout_s: float) -> bool: ...
    def publication_due(self, due_ns: int) -> None: ...  # monotonic; 0: no round is closed for it
    def wait_publication(self, due_ns: int, timeout_s: float) -> bool: ...
    def dead_letters(self, last_round: int) -> tuple[builtins.bytes, int]: ...  # unpublished entries, number
    def schemas(self, last_round: int) -> builtins.bytes: ...  # those of the entries that are schemas
    def release_dead_letters(self, bytes: int, entries: int) -> None: ...  # published

class Heartbeat:
    """A thread that beats, from now to stop(), whatever holds this program's Python up."""
    def __init__(self, end: CoordinatorEnd) -> None: ...
    def stop(self) -> None: ...

class IngestEnd:
    def __init__(self, arena: Arena) -> None: ...
    def wait_ready(self, timeout_s: float) -> bool: ...
    def stop(self) -> Stop: ...
    def fill_round(self, round: int, first_slot: int, rows: Sequence[int], closed: bool = True) -> None:
        """Slots first_slot.. hold rows[i] rows each, and no more come where it is closed."""

class Silence:
    def __init__(self) -> None: ...
    def lasts(self, beat_ns: int, now_ns: int) -> bool: ...

# train: a worker's rounds, their log, averaging

class WorkerStatus(enum.IntEnum):
    WORKING = 0
    FINISHED = 1
    LEAVE = 2
    DIVERGED = 3

class Worker:
    round: int  # begun
    state_address: int
    share_address: int
    base_address: int
    def __init__(self, arena: Arena, worker: int) -> None: ...
    def follow(self, rate_of: Callable[[int, float], float]) -> None: ...
    def score_means(self, plan: Plan, state: int, base: int, share: int) -> None: ...
    def run_closed_round(self, plan: Plan) -> None: ...
    def run(self, plan: Plan, timeout_s: float) -> WorkerStatus: ...

class LogSource:
    """The records that ranges of a round log touch; `open` gives the source of a partition from an offset on."""
    def __init__(self, open: Callable[[int, int], Source]) -> None: ...

class LogStatus(enum.IntEnum):
    FILLED = 0
    LACKING = 1  # a partition holds fewer records than the range says
    SILENT = 2

class LogFiller:
    """Slots as a log tells them."""
    def __init__(
        self, arena: Arena, source: LogSource, silence_s: float, format: _Format, plan: DecodePlan
    ) -> None: ...
    def fill(self, slot: int, ranges: builtins.bytes) -> tuple[LogStatus, int, int]:
        """How it ended; rows of the slot; which of the ranges was not filled."""

class RoundLogThread:
    def __init__(self, end: CoordinatorEnd) -> None: ...
    def start(self) -> None: ...
    def waiting_bytes(self) -> int: ...
    def take(self) -> tuple[int, int, bytes, bytes, bytes]:
        """(last round, newest timestamp in ms, rounds, slots, ranges)."""

# source: where records come from, and the loop that takes them into the ring

def arm_failpoint(name: str, hit: int, signal: int) -> None: ...

class Source: ...

class KafkaSource(Source):
    ended: bool
    def __init__(
        self, consumer: KafkaConsumer, topic: str, end_offsets: Sequence[tuple[int, int]], bounded: bool
    ) -> None: ...
    def read_with(self, consumer: KafkaConsumer) -> None:
        """From now on, in the place of the one before; Ingest.rewind() comes next."""

class MemorySource(Source):
    """Records a program puts in."""

    starts: list[tuple[int, int]]  # partition and offset, once a loop has started

    def __init__(self) -> None: ...
    def put(self, record: bytes, timeout_s: float, partition: int = -1, offset: int = -1, span: int = 1) -> bool:
        """Waits while too much lies there; False after the time-out, or when nobody takes any more.

        By default it is of one partition, its offset its number; `span`: offsets it takes up.
        """
    def end_round(self) -> None:
        """Ends a round: records put before and after this call belong to different rounds."""
    def end(self) -> None: ...
    def close(self) -> None:
        """Nobody takes any more."""

class IteratorSource(Source):
    """Records of one partition, offset and value, as they are asked for."""
    def __init__(self, records: Iterator[tuple[int, builtins.bytes]]) -> None: ...

class IngestStatus(enum.IntEnum):
    WORKING = 0
    ENDED = 1
    LEAVE = 2
    WAITING = 3  # as WORKING, but some partition's next record needs a schema that is not known yet
    ROUND_ENDED = 4  # as WORKING: the source has ended the round that was open

class RoundCutter:
    """The state that the ingest threads share: the numbers of slots and the ends of rounds."""

    partitions: int  # that the run began with

    def __init__(
        self, arena: Arena, *, round_interval_ns: int = -1, batch_growth: int = 0, min_batch_rows: int = 1
    ) -> None: ...
    def leave(self) -> None:
        """Every thread's run() gives LEAVE."""

class Ingest:
    """One thread's loop; all are made before the first start()."""

    def __init__(self, cutter: RoundCutter, source: Source, format: _Format, plan: DecodePlan) -> None: ...
    def start(self) -> None: ...
    def owns(self, partition: int) -> bool: ...  # no other thread reads it
    def add_partition(self, partition: int) -> None: ...
    def rewind(self) -> None:
        """The source begins again where this has got to."""
    def run(self, timeout_s: float) -> IngestStatus: ...

# kafka: librdkafka consumer and producer. kafka_load() comes first; offsets are (partition, offset).
_Settings = list[tuple[str, str]]
_Offsets = list[tuple[int, int]]
_Headers = list[tuple[str, bytes | None]]
_Event = tuple[int, int, str, str]  # level, code, facility, text
_Message = tuple[int, int, int, bytes | None, bytes | None, _Headers, int, str]

class KafkaFailure(RuntimeError):
    """args: (librdkafka error code, text)."""

    args: tuple[int, str]

def kafka_load(path: str) -> None: ...
def kafka_version() -> str: ...
def kafka_error_name(code: int) -> str: ...
def kafka_error_text(code: int) -> str: ...
class KafkaResponse(enum.IntEnum):
    """The response to an error code: native/kafka/response.h."""

    WAIT = ...
    MISSING = ...
    RENEW = ...
    REFUSE = ...
    DENIED = ...

class KafkaCode(enum.IntEnum):
    """librdkafka's own error codes that are asked for by name."""

    TRANSPORT = ...
    PARTITION_EOF = ...
    ALL_BROKERS_DOWN = ...
    QUEUE_FULL = ...
    TIMED_OUT = ...
    SSL = ...
    INCONSISTENT = ...
    FENCED = ...

def kafka_response(code: int) -> KafkaResponse: ...
def kafka_is_passing(code: int) -> bool: ...

def kafka_responses() -> list[tuple[int, str, KafkaResponse]]:
    """(code, name, response) of every code the table names."""

class KafkaPurpose(enum.Enum):
    """The purpose of a client: native/kafka/settings.h."""

    INGEST = ...
    READ = ...
    REPLAY = ...
    FOLLOW = ...
    SERVE = ...
    ANSWERS = ...
    REQUESTS = ...
    REQUESTS_ONCE = ...
    GROUP = ...
    PUBLISH = ...
    ANSWER = ...
    ANSWER_ONCE = ...
    RESEND = ...
    WRITE = ...
    STREAM = ...
    ADMIN = ...
    START = ...

def kafka_client_settings(purpose: KafkaPurpose, given: _Settings, own: _Settings, clients: int = 1) -> _Settings:
    """The settings a client is made with: our defaults, under `given`, under what is not the user's, under `own`.

    Of so many `clients` each has its share of the memory for messages.
    """

def kafka_settings() -> list[tuple[str, str | None, str, list[KafkaPurpose], str]]:
    """The whole table: property, value (None: each client's own), given | fixed | owned, who has it, why."""

class _KafkaClient:
    def partition_count(self, topic: str, timeout_ms: int) -> int: ...
    def topic_id(self, topic: str, timeout_ms: int) -> str: ...
    def watermarks(self, topic: str, partition: int, timeout_ms: int) -> tuple[int, int]: ...
    def bounds(self, topic: str, timeout_ms: int) -> list[tuple[int, int]]: ...
    def drain_events(self) -> list[_Event]: ...
    def close(self) -> None: ...

class KafkaConsumer(_KafkaClient):
    def __init__(self, settings: _Settings) -> None: ...
    def assign(self, topic: str, offsets: _Offsets) -> None: ...
    def subscribe(self, topic: str) -> None: ...
    def assignment(self) -> list[int]: ...
    def consume(self, capacity: int, timeout_ms: int) -> list[_Message]: ...
    def pause(self, partitions: list[int]) -> None: ...
    def resume(self, partitions: list[int]) -> None: ...
    def seek(self, offsets: _Offsets, timeout_ms: int) -> None: ...
    def position(self, partitions: list[int]) -> _Offsets: ...
    def committed(self, partitions: list[int], timeout_ms: int) -> _Offsets: ...
    def rewind_to_committed(self, otherwise: int, timeout_ms: int) -> None: ...
    def commit(self, offsets: _Offsets) -> None: ...
    def is_deaf(self, timeout_ms: int) -> bool: ...
    def group_metadata(self) -> bytes: ...

class _KafkaProducing:
    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = -1,
        headers: _Headers = [],
        note: bool = False,
    ) -> int: ...
    def poll(self, timeout_ms: int) -> int: ...
    @property
    def noted_offset(self) -> int: ...

class KafkaProducer(_KafkaProducing, _KafkaClient):
    def __init__(self, settings: _Settings) -> None: ...
    def flush(self, timeout_ms: int) -> int: ...

class KafkaNext(enum.Enum):
    """The next step after an outcome: native/kafka/transaction.h."""

    ON = ...
    AGAIN = ...
    ABORT = ...
    RENEW = ...

class KafkaOutcome:
    """The outcome of a call of the transactional interface; code 0 is success."""

    code: int
    retriable: bool
    requires_abort: bool
    fatal: bool
    text: str
    def __init__(
        self, code: int, retriable: bool = False, requires_abort: bool = False, fatal: bool = False, text: str = ""
    ) -> None: ...
    def next(self, over: bool) -> KafkaNext:
        """`over`: the time in which the call may be made again has passed."""

class KafkaEnding(enum.Enum):
    """How a transaction ended; UNKNOWN: committed or not, and the producer has been given up."""

    COMMITTED = ...
    ABORTED = ...
    UNKNOWN = ...

class KafkaTransactionEnd:
    ending: KafkaEnding
    why: KafkaOutcome

class KafkaTransactionalProducer(_KafkaProducing):
    """Makes transactions by the rules of native/kafka/transaction.h."""

    def __init__(self, settings: _Settings) -> None: ...
    def prepare(self) -> KafkaOutcome:
        """Tries once for a producer that may begin; code 0 when there is one."""

    def begin(self) -> KafkaOutcome: ...
    def flush(self) -> int: ...
    def commit(
        self, topic: str = "", offsets: _Offsets = [], group_metadata: bytes = b"", identity: str = ""
    ) -> KafkaTransactionEnd:
        """With the group's `offsets` in `topic`, where there are any, and `identity` beside them."""

    def fail(self, why: KafkaOutcome) -> KafkaTransactionEnd:
        """Ends the transaction that `why` does not let go on."""

    def abort(self, reason: str) -> KafkaTransactionEnd:
        """Ends one that is not wanted any more."""

    def drain_events(self) -> list[_Event]: ...
    def close(self) -> None: ...

def kafka_not_queued(code: int, topic: str) -> KafkaOutcome:
    """The outcome of a produce() that gave `code`."""

# decode: decode plans, records and Python rows into slots
_DeadRows = list[tuple[int, int, str, str, bool]]  # row from, row to, path, reason, remainder
_FilteredRows = list[tuple[int, int, int]]  # row from, row to, column whose value is missing

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
def fit_picture(points: NDArray[np.uint8], fitted: NDArray[np.uint8]) -> None: ...
def flac_samples(flac: bytes) -> int:
    """Returns the samples of each channel, from the head or else from the last frame; 0 if that cannot be known."""

def decoder_formats() -> list[str]: ...
def column_kinds() -> list[str]: ...
def cell_transforms() -> list[str]: ...

class DecodePlan:
    layout: SlotLayout
    def __init__(
        self, columns: list[dict[str, Any]], short_columns: Sequence[int], layout: SlotLayout,
        constants: dict[str, float], transforms: dict[str, Any] | None = None, refuses_empty: bool = False,
    ) -> None: ...   # `constants`: of blocks that no column gives, what lies in every row

class RowTally:
    """The outcomes of rows. `newest_event_time_ms` is -1 if no trained row has an event time."""

    trained: int
    dead: int
    filtered: int
    newest_event_time_ms: int
    dead_rows: _DeadRows
    filtered_rows: _FilteredRows

class RecordAround:
    """The message metadata of a record: partition, offset, timestamp, key and headers."""

    def __init__(
        self, partition: int, offset: int, timestamp_ms: int, key: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
    ) -> None: ...

class BatchFiller:
    """Rows of records, or of Python, into slots of the plan's layout. One thread at a time."""

    rows: int  # in the batch
    record_rows: int  # of the record at hand, passed so far
    def __init__(self, format: _Format, plan: DecodePlan) -> None: ...
    def open(self, slot: Any) -> None:
        """An empty batch in these bytes."""

    def fill(
        self, record: bytes, from_row: int = 0, until: int | None = None, around: RecordAround | None = None
    ) -> bool:
        """A record's rows; False where the batch has `until` rows, or all it can hold, before the record's end."""

    def more(self, until: int | None = None) -> bool:
        """Goes on with that record."""

    def fill_rows(self, rows: Any, first: int = 0, until: int | None = None) -> bool:
        """A dict, a list of values or a list of rows from the `first` on, as fill()."""

    def close(self) -> int:
        """The batch is done: its slot tells its rows and is zero behind them. Gives their number."""

    def take_tally(self) -> RowTally:
        """Returns the tally of rows passed since the batch was opened or the last tally was taken.

        The event time is that of the batch.
        """

    def count(
        self, records: list[bytes], from_row: int = 0, most: int | None = None,
        around: Sequence[RecordAround] | None = None,
    ) -> RowTally:
        """Returns the tally of all rows of these records, up to the first `most` that can be trained.

        The first record starts at `from_row`. No rows are kept, and no batch is open afterwards.
        """

class RowReader:
    """Rows of records as Python values, each cell as it stands in the record. One thread at a time."""

    def __init__(
        self, format: _Format, columns: Sequence[Mapping[str, Any]], short_columns: list[int], layout: SlotLayout
    ) -> None:
        """`columns`: see streamtrain/columns/rows.py; `layout`: an i32 for each, in the block that it names."""

    def read(
        self, record: bytes, around: RecordAround | None = None
    ) -> tuple[list[dict[str, Any]], list[tuple[int, int, str, str, bool]]]:
        """The rows that can be read, without missing cells; and of others (from, to, path, reason, is the rest)."""

class CsvCell(enum.Enum):
    """The type that a cell of a line is read as. NUMBER: a number, if it is one. TIME: a number, or ISO 8601 as ms."""

    TEXT = ...
    NUMBER = ...
    TIME = ...

MISSING_WORDS: list[str]  # that stand for a missing number or time

def csv_lines(
    text: bytes, most: int, last: bool, delimiter: str, quote: str, skip_space: bool
) -> tuple[int, int]:
    """(how many whole lines a text begins with, up to `most`, and their bytes); `last`: nothing comes behind it.

    `skip_space`: spaces before a cell are none of it.
    """

class RecordEncoder:
    """Python rows → records of one format. One thread at a time.

    `columns` are Schema.native_columns(); `convert(value, column)` gives a plain value for one of another type, or
    None. Each call raises ValueError((row, column, expected, got)) for a cell its column cannot take.
    """

    def __init__(
        self, format: _Format, columns: list[dict[str, Any]], convert: Callable[[Any, int], Any]
    ) -> None: ...
    def encode_row(self, row: dict[str, Any]) -> bytes | None:
        """None where the dict is no row but columns."""

    def read_rows(self, rows: list[dict[str, Any]]) -> None: ...
    def read_columns(self, columns: dict[str, Any], rows: int) -> None: ...
    def read_csv(
        self, text: bytes, order: Sequence[tuple[int, CsvCell]], rows: int, delimiter: str, quote: str,
        skip_space: bool,
    ) -> None:
        """`rows` lines. Of each cell its column, below 0 of none, and what it is read as.

        A line that is none is a mistake without a column's name.
        """

    def encode(self, first: int, count: int) -> bytes:
        """A record of `count` of the rows read last."""

    def encode_chosen(self, rows: list[int]) -> bytes: ...
    @property
    def most_rows(self) -> int:
        """The largest number of rows in one record."""

    def clear(self) -> None:
        """Lets go of the arrays read."""

# predict: scoring of requests, the predictor's loop

# name ("" of one alone), outputs, class names, whether these are whole numbers or booleans and predicted as such
_Heads = Sequence[tuple[str, int, list[str], bool]]

class RequestScorer:
    """Answers requests with one snapshot: bytes, slot, plan, JSON. One thread at a time."""

    def __init__(
        self, plan: Plan, decode_plan: DecodePlan, format: _Format, heads: _Heads, version: int, digest: str
    ) -> None: ...
    @property
    def version(self) -> int: ...
    def score(
        self, topic: str, requests: list[bytes | None], around: Sequence[RecordAround] = ()
    ) -> list[tuple[bytes, str, int, int]]:
        """(body, why no row was answered or "", rows, errors) of as many requests as are answered at once.

        They are answered as if they stood in `topic` at partition 0 from offset 0 on, or in the messages `around`.
        """

class RowScorer:
    """Predicts Python rows with one snapshot: slot, plan, answers. One thread at a time."""

    def __init__(self, plan: Plan, decode_plan: DecodePlan, heads: _Heads, free_from: int) -> None: ...
    def score_rows(self, rows: dict[str, Any] | list[dict[str, Any]]) -> tuple[Any, list[tuple[int, str, str]]]:
        """(an answer or a list of them, [(row, path, reason)]); None is the answer of a row that failed."""

    def score_columns(self, columns: dict[str, Any]) -> tuple[list[Any], list[tuple[int, str, str]]]:
        """The same of lists and 1-dimensional arrays of numbers of one length."""

    def outputs_of_columns(self, columns: dict[str, Any]) -> tuple[bytes, list[tuple[int, str, str]]]:
        """The same as (rows, width) float64, without those rows that failed."""

class BodyForm(enum.Enum):
    """The form of the answer to a body: one row's object, an array, or an error as an object."""

    ROW = 0
    ROWS = 1
    BROKEN = 2
    TOO_LARGE = 3

class BodyScorer:
    """Answers bodies of JSON with one snapshot: bytes, slot, plan, JSON. One thread at a time."""

    def __init__(self, plan: Plan, decode_plan: DecodePlan, heads: _Heads, most_bytes: int) -> None: ...
    def score(self, body: bytes, released: bool) -> tuple[bytes, BodyForm, int, int]:
        """(text, form, rows, errors); answers of more than `most_bytes` are refused. `released`: without the GIL."""

class Predictor:
    """One thread runs it; serve(), counters() and drain_events() may be called by others."""

    def __init__(
        self,
        consumer: _Settings,
        producer: _Settings,
        requests: str,
        predictions: str,
        exactly_once: bool,
        until_end: bool,
        traced: bool = False,
    ) -> None: ...
    def serve(self, scorers: Sequence[tuple[str, RequestScorer]]) -> None:
        """By name, from the next batch on; the first answers what names none. ValueError for what is there twice."""

    def run(self, milliseconds: int) -> bool:
        """Works for about that long; True when until_end has been reached."""

    def look_again(self) -> None:
        """Between two run()s: what waits for a schema is looked at again."""

    def finish(self, timeout_ms: int) -> bool:
        """Delivers what is on its way; False: not all arrived in time."""

    def close(self, timeout_ms: int) -> bool:
        """As finish, then commits and leaves the group."""

    def drain_traced(self) -> tuple[list[tuple[bytes, bytes, int, int, int, int, int, int, int, bytes]], int]:
        """Between two run()s, where `traced`: requests that were answered whose header traceparent says sampled, and
        how many more there have been in all. Each: traceparent, tracestate, partition, offset, when its batch was taken
        and its answer delivered in ns since 1970, version, rows, rows with errors, why no row was answered."""

    def drain_events(self) -> list[_Event]: ...
    def counters(self) -> dict[str, int]: ...

"""Record formats, kinds of columns, paths and what stands around records: a sink for each format without a registry."""

from __future__ import annotations

import base64
import csv
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa
import pytest
from avro_schemas import nullable, record

from streamtrain import RecordWriter
from streamtrain.clients.dead_letters import read_dead_letters
from streamtrain.compute import snapshot
from tests.e2e import commands
from tests.e2e.harness import LiveJob, rows
from tests.e2e.sink import Bad, Feature, Message, Place, Plan, Row, Sent, Sink, run_sink

# -- lists, vectors and texts ---------------------------------------------------------------------------------------

LISTS = """
tags = { kind = "category", list = true, buckets = 64, embed = 4, most = 6, missing = "" }
stops = { kind = "category", list = true, buckets = 16, embed = 2, most = 3, cut = true, pool = "sum", missing = "" }
place = { kind = "vector", size = 3, standardize = true, missing = 0 }
said = { kind = "text", ngrams = [1, 2], buckets = 512, most = 9, missing = "" }
"""


def lists(place: Place, row: Row) -> None:
    random = np.random.default_rng(place.row)
    row["tags"] = random.choice(list("abcdefgh"), random.integers(0, 5)).tolist() + ["yes"] * row["y"]
    row["said"] = " ".join(random.choice(["Fog", "late,", "AGAIN", "\u00e9t\u00e9"], 5))
    if place.row % 3:
        row["stops"] = random.integers(0, 30, random.integers(0, 6)).tolist()
    if place.row % 4:
        row["place"] = random.normal([3 + 4 * row["y"], 3, 3], 2).round(3).tolist()


def check_lists(sink: Sink) -> None:
    names = {*sink.newest.parameters, *sink.newest.statistics}
    assert {"tags.embedding", "stops.embedding", "standardize.vectors"} <= names
    assert any(name.startswith("said.") for name in names), names
    some = [sink.wired(row) for row in sink.request_rows if "place" in row]
    with sink.live.model() as model:
        assert model.predict({**some[0], "place": np.array(some[0]["place"])}) == model.predict(some[0])
        for name, yes, no in (("tags", ["a", "yes"], ["a"]), ("place", [8, 3, 3], [2, 3, 3])):  # they say the label
            found = [[model.predict({**row, name: cell})["prediction"] for row in some] for cell in (yes, no)]
            high, low = (np.mean([each["y"] if isinstance(each, dict) else each for each in of]) for of in found)
            assert high > low, (name, high, low)


LIST_FEATURE = Feature(
    "lists", {"columns": LISTS}, cells=lists, check=check_lists,
    bad=[Bad({"tags": list("abcdefg")}, ".tags", "at most 6 values, got 7"),
         Bad({"said": "a b c d e f"}, ".said", "at most 9 values, got 11")],
)  # fmt: skip

# -- what stands around a record ------------------------------------------------------------------------------------

FIRST_MS = time.time_ns() // 1_000_000 - 3_600_000  # one that Kafka neither refuses nor removes
AROUND = """
at = {{ kind = "number", standardize = true{timestamp} }}
tenant = {{ kind = "category", buckets = 32, embed = 2, missing = "none"{tenant} }}
user = {{ kind = "category", buckets = 64, embed = 2{key} }}
part = {{ kind = "category", buckets = 8, embed = 2{partition} }}
number = {{ kind = "number", standardize = true{offset} }}
when = {{ role = "event_time"{timestamp} }}
"""
SOURCES = {"timestamp": "timestamp", "tenant": "headers.tenant", "key": "key", "partition": "partition",
           "offset": "offset"}  # fmt: skip


def tenant_of(message: int) -> str | None:
    return None if message % 5 == 4 else f"tenant {message % 9}"


def around(message: int) -> Row:
    tenant = tenant_of(message)
    headers = [] if tenant is None else [("tenant", b"first"), ("tenant", tenant.encode()), ("more", None)]
    return {"key": f"user {message % 50}".encode(), "headers": headers, "timestamp": FIRST_MS + 77 * message}


def inside(place: Place, row: Row) -> None:
    at = FIRST_MS + 77 * place.message
    row |= {"at": at, "when": at, "tenant": tenant_of(place.message), "user": f"user {place.message % 50}", "part": 0,
            "number": place.message}  # fmt: skip


AROUND_FEATURE = Feature(
    "around", {"columns": AROUND.format(**{name: f', from = "{source}"' for name, source in SOURCES.items()})},
    twin={"columns": AROUND.format(**dict.fromkeys(SOURCES, ""))}, cells=inside, around=around,
)  # fmt: skip


LISTS_ALONE = Feature("lists", {"columns": LISTS}, cells=lists, check=check_lists)  # where no row is bad


def wrong_headers(sink: Sink) -> None:
    """Cells around a record that do not fit make all of its rows dead."""
    value = msgpack.packb(sink.filled(rows(4), sink.sent))
    for header, reason in ((b"\xff", "got text that is not UTF-8"), (None, "got nothing (missing)")):
        message = {"value": value, "key": b"k", "headers": [("tenant", b"t"), ("owner", header)]}
        sink.send([Sent(message, dead=[("headers.owner", reason)] * 4)])


def check_headers(sink: Sink) -> None:
    """A dead letter has the place; `resend` refuses what would be dead again, and sends what is mended."""
    job = sink.live
    dead_letters = [json.loads(line) for line in job.here("dead-letters list", "--json").stdout.splitlines()]
    assert [each["rows"] for each in dead_letters if each["path"] == "headers.owner"] == [4, 4]
    assert job.here("check").returncode == 0
    assert "would be dead letters again" in job.here("dead-letters resend").stderr
    text = job.path.read_text()
    job.path.write_text(text.replace('from = "headers.owner"', 'from = "headers.other", missing = "-"'))
    done = job.here("dead-letters resend", "--skip-bad")
    job.path.write_text(text)
    assert done.stdout.startswith(f"{8 + sink.left_out} rows of "), done


OWNER = Feature(
    "headers that do not fit", {"columns": 'owner = { kind = "category", buckets = 9, from = "headers.owner" }'},
    twin={"columns": 'owner = { kind = "category", buckets = 9 }'}, cells=lambda place, row: row.update(owner="acme"),
    around=lambda message: {"headers": [*around(message)["headers"], ("owner", b"acme")]}, then=wrong_headers,
    check=check_headers,
)  # fmt: skip


NO_RECORDS = {
    b"\xff\xfe not msgpack": "expected a map or an array, got an integer",
    b"": "expected a record, got an empty value",
    b"\xdd\xff\xff\xff\xff": "an array claims 4294967295 elements",
    b"\x00\x00\x00\x00\x07abc": "starts like a Schema Registry frame (0 and schema id 7)",
}


def no_records(sink: Sink) -> None:
    """Values that are no records are dead, one row each; a tombstone is none."""
    sink.send([Sent({"value": value}, dead=[("$", reason)]) for value, reason in NO_RECORDS.items()])
    sink.send([Sent({"value": None, "key": b"k"})])


def many_bad(sink: Sink) -> None:
    """Records with many bad rows: one is larger than a batch, one larger than what a dead letter carries."""
    for count in (64, 180):
        table = sink.filled(rows(count, seed=count), sink.sent)
        bad = [{**row, "x3": "bad"} for row in table[::4]]
        whole = [{**(bad[at // 4] if at % 4 == 0 else row), "padding": "." * 4_000}
                 for at, row in enumerate(table)]  # fmt: skip
        (message,) = sink.encoded(whole, sink.sent)
        good = [row for at, row in enumerate(table) if at % 4]
        sink.send([Sent(message, good, [(".x3", 'expected number, got "bad"')] * len(bad))])


def check_many_bad(sink: Sink) -> None:
    found = [found.letter for found in read_dead_letters(sink.live.job)]
    letters = [letter for letter in found if len(letter.rows) > 1]
    assert [(letter.row_count, letter.value is None) for letter in letters] == [(16, False), (45, True)]
    assert letters[0].value_bytes < 512_000 < letters[1].value_bytes


MANY_BAD = Feature("many bad rows in a record", then=many_bad, check=check_many_bad)


def poisoned(sink: Sink) -> None:
    """Sends two batches through two products of a row with itself. Loss and update of the first are finite: the square
    of the gradient does not fit Adam's second moment. In the second the loss is not finite."""
    for size, poison in ((-len(sink.rows) % 16, 0.25), (16, 1e11), (16, 9e17)):
        message_rows = sink.filled(rows(size, seed=size), sink.sent)
        left_out = 16 * (poison > 1)
        for label, row in enumerate(message_rows[: 2 * (poison > 1)]):  # one of them is mistaken
            row |= {"poison": poison, "y": label}
        for message in sink.encoded(message_rows, sink.sent) if message_rows else ():
            sink.send([Sent(message, message_rows, [("", "not finite")] * left_out, left_out)])


def check_finite(sink: Sink) -> None:
    with sink.live.topic() as topic:
        stored = topic.newest(trainer=True)
    assert stored is not None and stored.trainer is not None
    for name, array in {**snapshot.decode(stored.model), **snapshot.decode(stored.trainer)}.items():
        assert np.isfinite(array).all(), name


POISON = Feature(
    "a gradient that would poison the optimizer",
    {"columns": 'poison = { kind = "number" }', "model": "layers = [{ cross = 2 }]"},
    cells=lambda place, row: row.update(poison=0.25), then=poisoned, check=check_finite,
)  # fmt: skip


def written(sink: Sink) -> None:
    """Rows given together, which are one record where one may hold many."""
    message_rows, around = sink.filled(rows(50, seed=4), sink.sent), {}
    for feature in sink.features:
        around |= feature.around(sink.sent)
    given = [{name: cell for name, cell in row.items() if name not in sink.apart} for row in message_rows]
    with RecordWriter(sink.live.job) as writer:
        count = writer.write(
            given, key=around.get("key"), headers=around.get("headers"), timestamp_ms=around.get("timestamp")
        )
    assert count == 50
    sink.rows += message_rows
    sink.sent += 1


WRITER = Feature("our own writer", then=written)

# -- pictures and sounds --------------------------------------------------------------------------------------------


def media(name: str, label: str, samples: Sequence[tuple[Any, Any]], column: str, bad: dict[str, bytes], head: str,
          learned: Callable[[Sink, Any, Row], object]) -> Feature:  # fmt: skip
    """A column of pictures or sounds, of which a head of their own learns what they are."""

    def cells(place: Place, row: Row) -> None:
        row[name], row[label] = samples[place.row % len(samples)]

    def check(sink: Sink) -> None:
        one = sink.wired(sink.request_rows[0])
        with sink.live.model() as model:
            assert model.predict({**one, name: base64.b64encode(one[name]).decode()}) == model.predict(one)
            learned(sink, model, one)

    classes = sorted({what for _, what in samples}, reverse=True)  # low, high
    loss = "softmax_cross_entropy" if len(classes) > 2 else "binary_cross_entropy"
    return Feature(
        name, {"columns": f'{name} = {{ {column} }}\n{label} = {{ role = "label", classes = {json.dumps(classes)} }}',
               "model.graph": f'{label}_of = {{ {head}, of = "input" }}',
               f"model.heads.{label}": f'of = "{label}_of"\nloss = "{loss}"'},
        cells=cells, bad=[Bad({name: raw}, f".{name}", reason) for reason, raw in bad.items()], check=check,
    )  # fmt: skip


def clip_feature() -> Feature:
    """Tones of two pitches in noise."""
    from sounds import labelled, tone, wav

    def learned(sink: Sink, model: Any, one: Row) -> None:
        fresh = [(wav(tone(2000, hz, 0.3, 10_000 + seed)), hz > 500) for seed in range(100) for hz in (440.0, 660.0)]
        answers = model.predict([{**one, "clip": raw} for raw, _ in fresh])
        high = [answer["prediction"]["pitch"] > 0.5 for answer in answers]
        assert sum(each == is_high for each, (_, is_high) in zip(high, fresh, strict=True)) > 190

    clips = labelled(600)
    column = 'kind = "audio", rate = 8000, seconds = 0.25, features = { mel = 16, step = 128 }, standardize = true'
    other = "expected WAV or FLAC of 8000 samples a second, got"
    bad = {f"{other} a WAV that is cut short": clips[0][0][:300], f"{other} neither": b"none",
           f"{other} one of 44100": wav(tone(2000), 44100)}  # fmt: skip
    return media("clip", "pitch", clips, column, bad, "dense = 1", learned)


def photo_feature() -> Feature:
    """CIFAR-10's JPEGs."""
    from pictures import bomb, labelled

    def learned(sink: Sink, model: Any, one: Row) -> None:
        assert sink.total["what.log_loss"] < sink.total["what.constant_log_loss"] - 0.02, sink.total

    photos, other = labelled(2_500), "expected JPEG or PNG, got"
    bad = {f"{other} a JPEG that is cut short": photos[0][0][:300], f"{other} neither": b"none",
           f"{other} a picture of 65535 x 65535": bomb(65535, 65535)}  # fmt: skip
    head = 'dense = 64, activation = "relu"'
    return media("photo", "what", photos, 'kind = "image", size = [32, 32]', bad, head, learned)


HEADS = {"model.graph": 'y_of = { dense = 8, activation = "relu", of = "input" }', "model.heads.y": 'of = "y_of"'}


def test_msgpack(kafka: Any, tmp_path: Path) -> None:
    features = [LIST_FEATURE, AROUND_FEATURE, OWNER, Feature("no records", then=no_records), MANY_BAD, POISON]
    run_sink(kafka, tmp_path, features, Plan(once=True))


@pytest.mark.parametrize("records", ["packed", pytest.param("msgpack", marks=pytest.mark.full)])
def test_pictures_and_sounds(kafka: Any, tmp_path: Path, records: str) -> None:
    pytest.importorskip("cv2")
    pytest.importorskip("soundfile")
    base = {**HEADS, "records": f'format = "{records}"\nmax_dead_letter_share = 0.9'}
    plan = Plan(base, count=1_200, sizes=(100, 1, 30), once=True)
    run_sink(kafka, tmp_path, [LIST_FEATURE, AROUND_FEATURE, WRITER, clip_feature(), photo_feature()], plan)


# -- CSV ------------------------------------------------------------------------------------------------------------

NAMES = ["x1", "x2", "x3", "x4", "colour", "y"]


@pytest.mark.parametrize("header", [pytest.param(False, marks=pytest.mark.full), True], ids=["in order", "named"])
def test_csv(kafka: Any, tmp_path: Path, header: bool) -> None:
    """Lines as Python writes them, with columns in another order where a record names them."""

    def encode(sink: Sink, message_rows: Sequence[Row], number: int, is_request: bool) -> Iterator[Message]:
        names = [name for name in (NAMES[::-1] if header else NAMES) if name != "y" or not is_request]
        file = io.StringIO("\t".join(names) + "\r\n" if header else "", newline="")
        file.seek(0, io.SEEK_END)
        csv.DictWriter(file, names, extrasaction="ignore", delimiter="\t").writerows(message_rows)
        yield {"value": file.getvalue().encode()}

    def broken(sink: Sink) -> None:
        first = b"y\tcolour\tx4\tx3\tx2\tx1\r\n" if header else b""
        sink.send([
            Sent({"value": first + b"1\t2\n\n"}, dead=[("$[0]", "expected 6 cells, got 2")]),
            Sent({"value": first + b'1\t2\t"3\t4\tred\t1\n'},
                 dead=[("$[0]", "expected the closing quote of the cell")]),
            *([Sent({"value": first})] if header else []),
        ])  # fmt: skip

    records = f'format = "csv"\ndelimiter = "\\t"\nheader = {str(header).lower()}\nmax_dead_letter_share = 0.9'
    features = [Feature("broken lines", then=broken)]
    run_sink(kafka, tmp_path, features, Plan({"records": records}, sizes=(50, 7), encode=encode, once=True))


# -- Arrow ----------------------------------------------------------------------------------------------------------


def arrow_stream(message_rows: Sequence[Row], **options: Any) -> bytes:
    """Two batches, of a dictionary of colours, between columns that the job does not name."""
    names = dict.fromkeys(name for row in message_rows for name in row)  # pyarrow takes those of the first row alone
    table = pa.Table.from_pylist(
        [{"note": ["a", None], **{name: row.get(name) for name in names}, "more": {"b": 1}} for row in message_rows]
    )
    coded = table["colour"].dictionary_encode()
    table = table.set_column(table.column_names.index("colour"), "colour", coded).combine_chunks()
    to = io.BytesIO()
    with pa.ipc.new_stream(to, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=len(message_rows) // 2 + 1)
    return to.getvalue()


def test_arrow(kafka: Any, tmp_path: Path) -> None:
    """Streams of pyarrow and of our own writer."""

    def broken(sink: Sink) -> None:
        message_rows = sink.filled(rows(9), 0)
        error = "expected an Arrow IPC stream, got"
        sink.send([
            Sent({"value": arrow_stream(message_rows, compression="zstd")},
                 dead=[("", f"{error} a compressed body (LZ4 or ZSTD); write it without")]),
            Sent({"value": arrow_stream(message_rows)[:-3]}, dead=[("", f"{error} a message of 5 bytes")]),
        ])  # fmt: skip

    def encode(sink: Sink, message_rows: Sequence[Row], number: int, is_request: bool) -> Iterator[Message]:
        yield {"value": arrow_stream(message_rows)}

    features = [LIST_FEATURE, Feature("broken streams", then=broken), WRITER]
    base = {"records": 'format = "arrow"\nmax_dead_letter_share = 0.9'}
    run_sink(kafka, tmp_path, features, Plan(base, count=1_500, sizes=(50,), encode=encode, once=True))


# -- Avro and Protobuf by a schema beside the job file --------------------------------------------------------------

AVRO = record(*{**{f"x{i}": "double" for i in range(1, 5)}, "colour": "string", "y": nullable("int")}.items())
NUMBERS = " ".join(f"double x{i} = {i};" for i in range(1, 5))
MORE = "repeated string tags = 6; repeated sint32 stops = 7; repeated double place = 8; string said = 9;"
PROTO = (f'syntax = "proto3"; package air; message Flights {{ repeated Flight rows = 1; }} message Flight {{ {NUMBERS} '
         f"string colour = 5; {MORE} optional int32 y = 10; }}")  # fmt: skip
ONE = f'syntax = "proto3"; package air; message Flight {{ {NUMBERS} string colour = 5; {MORE} optional int32 y = 10; }}'


@pytest.mark.parametrize(
    ("kind", "text", "features"),
    [("avro", json.dumps(AVRO), []), ("protobuf", PROTO, [LIST_FEATURE]),
     pytest.param("protobuf", ONE, [LIST_FEATURE], marks=pytest.mark.full)],
    ids=["avro", "protobuf", "protobuf of one row"],
)  # fmt: skip
def test_a_schema_without_a_registry(
    kafka: Any, tmp_path: Path, kind: str, text: str, features: list[Feature]
) -> None:  # fmt: skip
    """Beside the job file while it trains; afterwards in it, and so what verifies has the text."""
    file = tmp_path / f"row.{kind}"

    def kept(sink: Sink) -> Any:
        file.unlink()
        sink.live.path.write_text(sink.live.path.read_text().replace(f'"{file.name}"', f"'''{text}'''"))
        return nullcontext()

    def run(chosen: Sequence[Feature]) -> None:
        file.write_text(text)
        Sink(kafka, tmp_path, chosen, plan).run()

    records = f'format = "{kind}"\nschema = "{file.name}"\nmax_dead_letter_share = 0.9'
    plan = Plan({"records": records}, count=1_200, once=True)
    run_sink(kafka, tmp_path, [*features, WRITER, Feature("the schema in the job file", verifying=kept)], plan, run)


# -- Vowpal Wabbit's lines: columns of namespaces, and a tag; the Reuters data, from what `init` guesses --------------

VW = {
    "records": 'format = "vw"\nmax_dead_letter_share = 0.9', "optimizer": "learning_rate = 0.05",
    "columns": """user = { kind = "sparse", buckets = 262144, namespaces = ["u", "v"] }
rest = { kind = "sparse", buckets = 262144, embed = 4 }
shard = { kind = "category", buckets = 16, embed = 2, path = "tag", missing = "" }
y = { role = "label" }""",
}  # fmt: skip


def test_vowpal_wabbit(kafka: Any, tmp_path: Path) -> None:
    """Each column learns from its namespaces, and the tag is a column."""

    def cells(place: Place, row: Row) -> None:
        """A feature of the user has the label."""
        random = np.random.default_rng(place.row)
        for name in [name for name in row if name != "y"]:
            del row[name]
        row["line"] = (
            f"'t{place.row % 3} |{random.choice(['u', 'v'])} {'yes' if row['y'] else 'no'}:0.5 n{random.integers(9)} "
            f"|page p{random.integers(9)} |other:2 {random.integers(99)}:{random.normal():.3f}"
        )

    def encode(sink: Sink, message_rows: Sequence[Row], number: int, is_request: bool) -> Iterator[Message]:
        yield {
            "value": "\n".join(
                row["line"] if is_request else f"{row['y']} {row['line']}" for row in message_rows
            ).encode()
        }

    def check(sink: Sink) -> None:
        assert {"user.embedding", "rest.embedding", "shard.embedding"} <= {*sink.newest.parameters}
        with sink.live.model() as model:
            yes, no = model.predict([{"tag": "t1", "user": {name: 0.5}, "rest": {"5": 1}} for name in ("yes", "no")])
            assert yes["prediction"] - no["prediction"] > 0.1
            records = [f"1 't1 |u {name}:0.5 | 5".encode() for name in ("yes", "no")]
            indexes = sink.live.job.plan().decode(records)["user"].values.tolist()
            as_read = model.predict([{"tag": "t1", "user": [[index, 0.5]], "rest": {"5": 1}} for index in indexes])
            assert [each["prediction"] for each in as_read] == [yes["prediction"], no["prediction"]]

    bad = [Bad({"line": "'t1 |u a |other x:bad"}, "", "number")] * 9
    feature = Feature("namespaces", cells=cells, bad=bad, check=check)
    run_sink(kafka, tmp_path, [feature], Plan(VW, count=1_200, sizes=(30,), encode=encode, once=True, fits=False))


DATA = Path(__file__).parents[3] / "shared/data/rcv1/rcv1_small.dat"


@pytest.mark.full
def test_reuters_from_init_to_a_snapshot(kafka: Any, tmp_path: Path) -> None:
    if not DATA.exists():
        pytest.skip("no data set rcv1")
    sample, path = tmp_path / "rcv1.vw", tmp_path / "first.toml"
    sample.write_bytes(DATA.read_bytes())
    done = commands.run(["init", str(path), "--from", str(sample), "--label", "label"])
    assert done.returncode == 0, done.stderr
    _, head, text = path.read_text().partition("[records]")
    assert 'format = "vw"' in text and 'kind = "sparse", buckets = 262144' in text
    job = LiveJob(kafka, tmp_path, "rcv1", head + text.replace('round_interval = "250ms"', 'round_interval = "off"'))
    assert job.here("check").returncode == 0
    lines = sample.read_bytes().splitlines(keepends=True)
    job.produce_values((b"".join(lines[at : at + 100]) for at in range(0, len(lines), 100)), partition=0)
    job.train("--until-end")
    job.verified()
    job.replayed()
    assert job.newest().manifest.rows_seen == len(lines)
    figures = job.newest().manifest.metrics["total"]
    assert figures["accuracy"] > 0.75 and figures["auc"] > 0.85, figures
    with job.model() as model:
        pairs = [[34884, 0.06], [34889, 0.3]]
        cells = (pairs, {str(index): value for index, value in pairs}, [])
        answers = model.predict([{"features": each} for each in cells])
        assert answers[0] == answers[1] != answers[2]

"""The round log's wire: golden bytes, parts, and every disagreement of its columns found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgpack
import numpy as np
import pytest

from streamtrain._native import CloseReason
from streamtrain.errors import CheckFailed
from streamtrain.topics import named_schemas, rounds
from streamtrain.topics.manifest import Counts, Run, Slot
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE, RoundLog
from streamtrain.topics.terms import Terms, columns_digest, model_digest
from streamtrain.topics.topic import MESSAGE_BYTES, sha256

GOLDEN = Path(__file__).parents[1] / "golden"


def terms(first_round: int = 10, **changes: object) -> Terms:
    example = Terms(
        first_round=first_round,
        learning_rate={"name": "constant", "rate": 3e-3},
        optimizer={"name": "adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
        average_optimizer_state=True,
        averaging_frequency=50_000,
        workers=2,
        slot=Slot(256, 64),
        batch_growth={"name": "off"},
        format={"name": "json"},
        columns_digest=sha256(b"columns"),
        model_digest=sha256(b"model"),
        topic_id="2Zk7Jx8LTPO4jX2vS0Q1fg",
        seed=7,
        build="0.1.0+abcdef",
    )
    return replace(example, **changes)  # type: ignore[arg-type]


def log(round_count: int = 3, slots_per_round: int = 2, ranges_per_slot: int = 2) -> RoundLog:
    slot_count = round_count * slots_per_round
    rounds = np.zeros(round_count, ROUND_DTYPE)
    rounds["round"] = np.arange(round_count) + 10
    rounds["first_slot"] = np.arange(round_count) * slots_per_round + 100
    rounds["slots"], rounds["workers"] = slots_per_round, 2
    rounds["closed_by"] = CloseReason.INTERVAL
    rounds["newest_event_ms"] = 1_749_999_999_000 + np.arange(round_count)
    slots = np.zeros(slot_count, SLOT_DTYPE)
    slots["slot"] = np.arange(slot_count) + 100
    slots["rows"] = slots["trained"] = 256
    slots["range_count"], slots["loss_sum"], slots["weight_sum"] = ranges_per_slot, 70.5, 256
    ranges = np.zeros(slot_count * ranges_per_slot, RANGE_DTYPE)
    ranges["from_offset"] = np.arange(len(ranges)) * 128
    ranges["to_offset"] = ranges["from_offset"] + 128
    ranges["trained"], ranges["record_rows"] = 128, -1
    return RoundLog(
        job="flights",
        lineage="ab" * 16,
        run=Run(2, "cd" * 16),
        version=8,
        digest=sha256(b"snapshot"),
        terms=(terms(),) if round_count else (),
        metrics={"total": {"log_loss": 0.28, "auc": float("nan")}},
        created_ms=1_750_000_000_000,
        worker_deaths=1,
        rounds=rounds,
        slots=slots,
        ranges=ranges,
    )


def same(one: RoundLog, other: RoundLog) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("rounds", "slots", "ranges"))


def test_golden_bytes() -> None:
    (message,) = rounds.messages(log())
    assert message.key == b"8/0"
    assert message.value == (GOLDEN / "rounds.v4.msgpack").read_bytes()


def test_round_trip() -> None:
    (message,) = rounds.messages(log())
    again = rounds.join([rounds.decode(bytes(message.value or b""))])
    assert same(again, log()) and rounds.messages(log(0)) == () and log(0).newest_event_ms == -1
    plain = log()
    for name in ("job", "lineage", "run", "version", "digest", "terms", "created_ms", "worker_deaths", "part", "parts"):
        assert getattr(again, name) == getattr(plain, name)
    assert again.metrics == {"total": {"log_loss": 0.28, "auc": None}}
    assert again.rows_trained == 6 * 256 and again.newest_event_ms == 1_749_999_999_002


GUID = "0a1b2c3d-0001-0203-0405-060708090a0b"
UNKNOWN = ("", "no such schema")
SCHEMAS = {"7": ('{"a":1}', ""), GUID: UNKNOWN, "3": UNKNOWN, str(2**32 - 1): UNKNOWN, "8": ("é" * 700_000, "")}


def with_schemas(schemas: dict[str, tuple[str, str]]) -> RoundLog:
    return replace(log(), schemas=np.frombuffer(named_schemas.encode(schemas), rounds.BYTE_DTYPE))


def test_the_schemas_that_records_name_are_part_of_a_log() -> None:
    """However long their texts are."""
    whole = with_schemas(SCHEMAS)
    messages = rounds.messages(whole)
    assert len(messages) > 1 and all(len(message.value or b"") <= MESSAGE_BYTES for message in messages)
    again = rounds.join([rounds.decode(bytes(message.value or b"")) for message in messages])
    assert again.named_schemas == SCHEMAS and log().named_schemas == {}
    assert rounds.log_digest(again) == rounds.log_digest(whole) != rounds.log_digest(log())
    backwards = dict(reversed(SCHEMAS.items()))
    assert named_schemas.encode(backwards) == named_schemas.encode(SCHEMAS)


NO_NAMES = [
    b"\xa1a", b"\xff", b"\7", b"\xc0", b"\xa0", b"\xa207", b"\xa2-1", b"\xaa4294967296",
    b"\xd9\x24" + GUID.upper().encode(), b"\xd9\x25" + GUID.encode() + b"\n",
    b"\xd9\x20" + GUID.replace("-", "").encode(),
]  # fmt: skip


@pytest.mark.parametrize("raw", [b"\1", b"\xc1", b"\x91\1", *(b"\x91\x93\x91%b\xa0\xa0" % each for each in NO_NAMES)])
def test_schemas_that_are_none_are_found(raw: bytes) -> None:
    with pytest.raises(CheckFailed, match=r"round log.schemas: expected"):
        rounds.messages(replace(log(), schemas=np.frombuffer(raw, rounds.BYTE_DTYPE)))


@pytest.mark.parametrize("shape", [(1, 1, 40_000), (40_000, 1, 1), (1, 50_000, 1), (200, 20, 7)])
def test_a_long_log_is_cut_and_joined(shape: tuple[int, int, int]) -> None:
    whole = log(*shape)
    messages = rounds.messages(whole)
    assert len(messages) > 1 and all(len(message.value or b"") <= MESSAGE_BYTES for message in messages)
    parts = [rounds.decode(bytes(message.value or b"")) for message in messages]
    assert same(rounds.join(parts), whole) and all(part.terms == log().terms for part in parts)
    cut = replace(parts[-1], slots=parts[-1].slots[:0], ranges=parts[-1].ranges[:0])
    foreign = [replace(parts[-1], **changes) for changes in ({"version": 9}, {"metrics": {}}, {"digest": b"x" * 32})]
    for wrong in (parts[:-1], parts[::-1], *([*parts[:-1], part] for part in foreign), [], [*parts[:-1], cut]):
        with pytest.raises(CheckFailed):
            rounds.join(wrong)


def test_terms_that_change_within_a_log_are_in_force_from_their_round_on() -> None:
    made = replace(log(5), terms=(terms(10), terms(12, learning_rate={"name": "constant", "rate": 0.5})))
    (message,) = rounds.messages(made)
    again = rounds.join([rounds.decode(bytes(message.value or b""))])
    found = [again.terms_at(number).learning_rate["rate"] for number in range(10, 15)]
    assert found == [3e-3, 3e-3, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    "wrong",
    [
        (), (terms(11),), (terms(9),), (terms(10), terms(10)), (terms(10), terms(13)), (terms(10, workers=3),),
        (terms(10), terms(12, workers=3)), (terms(10, averaging_frequency=1, workers=1),),
        (terms(10, slot=replace(terms().slot, row_capacity=255)),),
    ],
)  # fmt: skip
def test_rounds_that_do_not_keep_to_their_terms_are_found(wrong: tuple[object, ...]) -> None:
    with pytest.raises(CheckFailed):
        rounds.messages(replace(log(), terms=wrong))  # type: ignore[arg-type]


def test_the_digest_of_a_log_is_over_all_of_it_but_its_snapshot_and_its_parts() -> None:
    whole = log(1, 1, 40_000)
    parts = [rounds.decode(bytes(message.value or b"")) for message in rounds.messages(whole)]
    assert len(parts) > 1 and rounds.log_digest(rounds.join(parts)) == rounds.log_digest(whole)
    assert rounds.log_digest(replace(log(), digest=b"other" * 8)) == rounds.log_digest(log())
    others = [
        replace(log(), **changes)
        for changes in (
            {"job": "x"}, {"lineage": "ef" * 16}, {"run": Run(3, "cd" * 16)}, {"run": Run(2, "ce" * 16)}, 
            {"version": 9}, {"metrics": {}}, {"created_ms": 1}, {"worker_deaths": 0},
        )
    ]  # fmt: skip
    for column in ("rounds", "slots", "ranges"):
        for field in getattr(log(), column).dtype.names:
            changed = log()
            getattr(changed, column)[field][-1] += 1
            others.append(changed)
    other_field = {
        int: lambda was: was + 1, bool: lambda was: not was, str: lambda was: was + "x", bytes: sha256,
        dict: lambda was: {**was, "more": 1}, Slot: lambda was: replace(was, row_capacity=300),
    }  # fmt: skip
    for field in terms().__dataclass_fields__.keys() - {"first_round"}:
        was = getattr(terms(), field)
        others.append(replace(log(), terms=(terms(**{field: other_field[type(was)](was)}),)))
    assert len({rounds.log_digest(made) for made in [log(), *others]}) == len(others) + 1


def test_chain_and_counts_follow_the_log() -> None:
    made = log()
    made.slots["dead"][0], made.slots["filtered"][1], made.slots["tombstones"][2] = 5, 6, 7
    assert rounds.first_chain("ab" * 16) == sha256(b"ab" * 16)
    assert rounds.chain_after(b"c" * 32, made) == sha256(b"c" * 32 + rounds.log_digest(made))
    assert rounds.counts_after(Counts(100, 10, 1, 0), made) == Counts(100 + 6 * 256, 15, 7, 7)


def test_digests_of_columns_and_model_do_not_depend_on_order_or_optimizer() -> None:
    assert columns_digest({"a": 1, "b": (2,)}) == columns_digest({"b": [2], "a": 1}) != columns_digest({"a": 1})
    spec = {"layers": [{"dense": 4}], "loss": "x", "optimizer": {"name": "sgd"}, "average_optimizer_state": True}
    changed = {**spec, "optimizer": {"name": "adam"}, "average_optimizer_state": False}
    assert model_digest(spec) == model_digest(changed) != model_digest({**spec, "loss": "y"})
    under = terms(optimizer={"name": "momentum", "momentum": 0.5}, average_optimizer_state=False).model_spec(spec)
    assert under == {**spec, "optimizer": {"name": "momentum", "momentum": 0.5}, "average_optimizer_state": False}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("first_round", -1), ("workers", 0), ("averaging_frequency", 0), ("slot", [1]), ("format", {"x": 1}),
        ("format", {"name": "csv", "separator": b","}),
        ("learning_rate", 0.1), ("optimizer", {"name": 3}), ("batch_growth", None), ("columns_digest", b"x"),
        ("model_digest", "x" * 32), ("topic_id", 1), ("seed", -1), ("build", None), ("average_optimizer_state", 1),
    ],
)  # fmt: skip
def test_a_wrong_field_of_the_terms_is_named(field: str, value: object) -> None:
    document = msgpack.unpackb(rounds.messages(log())[0].value)
    document["terms"][0][field] = value
    with pytest.raises(CheckFailed, match=rf"terms\[0\].*{field}"):
        rounds.decode(msgpack.packb(document))


def test_columns_that_disagree_are_found() -> None:
    for column, field, value in (
        ("rounds", "round", 99), ("rounds", "slots", 3), ("rounds", "first_slot", 3), ("slots", "slot", 3),
        ("slots", "range_count", 1),
    ):  # fmt: skip
        wrong = log()
        getattr(wrong, column)[field][-1] = value
        with pytest.raises(CheckFailed):
            rounds.messages(wrong)
    with pytest.raises(CheckFailed):
        rounds.messages(replace(log(), ranges=np.zeros(12, "i4")))

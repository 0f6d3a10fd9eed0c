"""Contributions of many hosts: their wire, which of them make the next snapshot, and when the leader closes. Each
reason to refuse one is found alone; whatever happens to messages, no partition is folded twice."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import contributed
import golden_messages
import msgpack
import numpy as np
import pytest
from contributed import BASE, TERMS, Draft, contribution, life_of
from publisher import example_manifest as manifest

from streamtrain._native import StateBlockSpec, StateLayout
from streamtrain.errors import CheckFailed
from streamtrain.topics.accepting import Base, Ignored, Inbox, Pace, Reason, StateShape, grace, interval
from streamtrain.topics.contributions import Chunk, Head, Hello, decode, message, spans_of
from streamtrain.topics.manifest import CHUNK_BYTES, Contribution, Position
from streamtrain.topics.rounds import SLOT_DTYPE
from streamtrain.topics.terms import columns_digest, contribution_seed, model_digest
from streamtrain.topics.topic import MESSAGE_BYTES, Message, sha256


def value_of(found: Message) -> bytes:
    return bytes(found.value or b"")


def taken(messages: Sequence[Message], base: Base = BASE, at_s: Sequence[float] = (), **more: Any) -> Inbox:
    inbox = Inbox(base, **more)
    for offset, found in enumerate(messages):
        value = None if found.value is None else bytes(found.value)
        inbox.take(offset, found.key, value, at_s[offset] if at_s else 1.0)
    return inbox


# -- the wire ---------------------------------------------------------------------------------------------------------

HELLO = Hello("flights", "host-b", life_of(2))


def golden() -> list[Message]:
    """Every kind of message, and one that is none of ours."""
    return [message(HELLO), *contributed.messages(contribution(dead=2)), contributed.empty(), Message(b"x", b"y")]


def test_golden_messages_of_contributions() -> None:
    """No byte of them changes without a new version of the wire."""
    assert [found for found, _ in golden_messages.read("contributions")] == golden()


def test_round_trip_of_each_message() -> None:
    for found in golden()[:-1]:
        entry = decode(found.key, value_of(found))
        again = Message(found.key, entry.data) if isinstance(entry, Chunk) else message(entry)
        assert again == found
    head = decode(golden()[-2].key, value_of(golden()[-2]))
    assert isinstance(head, Head) and head.is_empty


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("wire", 2), ("job", 1), ("lineage", "x"), ("host", ""), ("life", life_of(9)), ("sequence", 1),
        ("base", {"version": 0, "digest": b"x" * 32}), ("spans", [[0, 1, 2, 3]]), ("spans", [[0, 0, 0, True, 0]]),
        ("spans", [[-1, 0, 0, 1, 0]]), ("size", 1), ("size", 1 << 50), ("early", 1), ("round", -1), ("layout", b"x"),
        ("send_ms", -1), ("terms", {}),
        ("counts", {"trained": -1}), ("weight", 1), ("weight", math.nan), ("weight", -1.0),
        ("sizes", {}), ("letter_entries", -1), ("chunks", b"x"), ("idle_ms", None), ("worker_deaths", 0.5),
    ],
)  # fmt: skip
def test_a_wrong_field_of_a_head_is_named(field: str, wrong: object) -> None:
    head = contributed.messages(contribution())[-1]
    document = {**msgpack.unpackb(value_of(head)), field: wrong}
    with pytest.raises(CheckFailed, match=field):
        decode(head.key, msgpack.packb(document))
    del document[field]
    with pytest.raises(CheckFailed, match=field):
        decode(head.key, msgpack.packb(document))


@pytest.mark.parametrize("key", [None, b"", b"x/hello", b"%s/01/head", b"%s/0/", b"%s/head", b"%s/0/head/"])
def test_another_key_is_none_of_ours(key: bytes | None) -> None:
    with pytest.raises(CheckFailed, match="expected a key"):
        decode(key and key.replace(b"%s", life_of(1).encode()), b"\x80")


def test_a_contribution_is_cut_into_chunks() -> None:
    """None is longer than a message may be, and they are one again."""
    base, state = contributed.large()
    draft = replace(contribution(base), state=state)
    sent = contributed.messages(draft)
    assert len(sent) == 2 + -(-len(draft.payload) // CHUNK_BYTES) > 4 - 1
    assert all(len(value_of(found)) <= MESSAGE_BYTES for found in sent)
    (accepted,) = taken(sent, base).accepted
    assert accepted.state == state and accepted.chunk_offsets == tuple(range(1, len(sent) - 1))
    (slim,) = taken(sent, base, keep_states=False).accepted
    assert slim.state is None and (slim.letters, slim.chunk_offsets) == (accepted.letters, accepted.chunk_offsets)
    assert np.array_equal(slim.log.ranges, accepted.log.ranges)


def test_the_weight_is_added_as_the_workers_add_theirs() -> None:
    """Each its own slots in order, then the workers in theirs; however many a forged head says there are."""
    slots = np.zeros(7, SLOT_DTYPE)
    slots["weight_sum"] = [1e16, 1.0, -1e16, 1.0, 3.0, 1.0, 5.0]
    log = taken(contributed.messages(contribution())).accepted[0].log
    for workers, weight in ((2, ((1e16 - 1e16) + 3.0 + 5.0) + (1.0 + 1.0 + 1.0)), (1, 10.0), (2**31 - 1, 10.0)):
        assert replace(log, slots=slots, terms=(replace(TERMS, workers=workers),)).weight == weight


# -- which are accepted -----------------------------------------------------------------------------------------------


def test_a_contribution_is_accepted_with_all_that_it_brings() -> None:
    draft = contribution(dead=2)
    sent = contributed.messages(draft)
    inbox = taken(sent, ends={0: 200, 1: 300})
    (found,) = inbox.accepted
    assert not inbox.refused and not inbox.ignored and inbox.inbox == len(sent) and inbox.answered == {"a"}
    assert (found.state, found.letters, found.offset) == (contributed.STATE, draft.letters, len(sent) - 1)
    assert found.head_digest == sha256(value_of(sent[-1])) and found.head == draft.sealed()
    for name in ("rounds", "slots", "ranges"):
        assert np.array_equal(getattr(found.log, name), getattr(draft, name)), name
    assert found.log.terms == (found.head.terms,) and found.log.rows_trained == 400


def test_moved_positions_without_a_row_are_a_contribution_and_nothing_is_none() -> None:
    draft = contribution()
    for column in (draft.ranges, draft.slots):
        column["filtered"], column["trained"] = column["trained"], 0
    draft.slots["rows"] = draft.slots["weight_sum"] = 0
    inbox = taken([*contributed.messages(draft), contributed.empty(host="b", life=life_of(2))])
    (found,) = inbox.accepted
    assert found.head.host == "a" and found.head.weight == 0 and found.head.counts.filtered == 400
    assert inbox.answered == {"a", "b"} and not inbox.refused and not inbox.ignored
    some = {"counts": found.head.counts, "weight": 1.0, "chunks": (sha256(b""),)}
    for change in ({name: value} for name, value in some.items()):
        assert [each.reason for each in taken([contributed.empty(**change)]).refused] == [Reason.SUMS]


def test_contributions_are_folded_in_the_order_of_their_smallest_partition() -> None:
    sent = []
    for number, partitions in enumerate([(5, 9), (2, 3), (4, 11), (0,)]):
        sent += contributed.messages(contribution(host=f"{number}", life=life_of(number), partitions=partitions))
    assert [each.head.host for each in taken(sent).accepted] == ["3", "1", "2", "0"]


def test_a_partition_that_no_snapshot_has_seen_begins_at_its_first_offset() -> None:
    fresh = contribution(partitions=(12,))
    assert taken(contributed.messages(fresh)).accepted[0].head.spans[0].begin == Position(0)
    fresh.ranges["from_offset"] += 1
    fresh.ranges["to_offset"] += 1
    assert [each.reason for each in taken(contributed.messages(fresh)).refused] == [Reason.BEGIN]


Change = Callable[[Draft], object]


def head(**changes: Any) -> Change:
    """Says something else in the head."""
    return lambda draft: draft.head.update(changes)


def terms(**changes: Any) -> Change:
    return lambda draft: draft.head.update(terms=replace(draft.head["terms"], **changes))


def put(column: str, field: str, value: object, index: int = 0) -> Change:
    """Puts a value into a struct of the log."""

    def change(draft: Draft) -> None:
        getattr(draft, column)[field][: index + 1][-1] = value

    return change


def state_with(offset: int, code: str, value: float) -> Change:
    def change(draft: Draft) -> None:
        raw = bytearray(draft.state)
        struct.pack_into(code, raw, offset, value)
        draft.state = bytes(raw)

    return change


def overlap(draft: Draft) -> None:
    draft.ranges["from_offset"][1] -= 1


def letters(value: bytes) -> Change:
    def change(draft: Draft) -> None:
        draft.letters = value

    return change


def two_rounds(draft: Draft) -> None:
    draft.rounds = np.repeat(draft.rounds, 2)
    draft.rounds["round"], draft.rounds["first_slot"], draft.rounds["slots"] = (5, 6), (0, 2), 2


def nothing(draft: Draft) -> None:
    draft.slots, draft.ranges, draft.letters = draft.slots[:0], draft.ranges[:0], b""
    draft.rounds["slots"] = 0


def later_slots(draft: Draft) -> None:
    draft.rounds["first_slot"] += 1
    draft.slots["slot"] += 1


# one change of a good contribution, which has two dead rows in partition 0
WRONG: list[tuple[Reason, Change]] = [
    (Reason.JOB, head(job="others")),
    (Reason.LINEAGE, head(lineage="cd" * 16)),
    (Reason.ROUND, head(round=6)),
    (Reason.ROUND, head(round=6, terms=replace(TERMS, first_round=6))),
    (Reason.ROUND, terms(first_round=4)),
    (Reason.LAYOUT, head(layout=sha256(b"another"))),
    (Reason.LAYOUT, lambda draft: setattr(draft, "state", draft.state[:-8])),
    (Reason.MODEL, terms(columns_digest=sha256(b"another"))),
    (Reason.MODEL, terms(model_digest=sha256(b"another"))),
    (Reason.MODEL, terms(optimizer={"name": "sgd", "momentum": 0.5})),
    (Reason.MODEL, terms(average_optimizer_state=False)),
    (Reason.TOPIC, terms(topic_id="another")),
    (Reason.SEED, terms(seed=BASE.seed)),
    (Reason.SEED, terms(seed=contribution_seed(BASE.seed, 1))),
    (Reason.DIGEST, head(chunks=(sha256(b"another"),))),
    (Reason.DIGEST, head(chunks=())),
    (Reason.INCOMPLETE, head(chunks=(sha256(b"another"),) * 2)),
    (Reason.NOT_FINITE, state_with(4, "<f", math.nan)),
    (Reason.NOT_FINITE, state_with(12, "<f", -math.inf)),
    (Reason.NOT_FINITE, state_with(144, "<d", math.inf)),
    (Reason.LOG, put("rounds", "round", 6)),
    (Reason.LOG, put("rounds", "first_slot", 1)),
    (Reason.LOG, put("rounds", "workers", 3)),
    (Reason.LOG, two_rounds),
    (Reason.LOG, nothing),
    (Reason.LOG, later_slots),
    (Reason.LOG, put("rounds", "statistics_pass", 1)),
    (Reason.LOG, put("rounds", "closed_by", 9)),
    (Reason.LOG, put("slots", "slot", 7)),
    (Reason.LOG, put("slots", "rows", 99)),
    (Reason.LOG, put("slots", "range_count", 2)),
    (Reason.LOG, put("ranges", "tombstones", 1)),
    (Reason.LOG, terms(averaging_frequency=1)),
    (Reason.RANGES, head(spans=contribution(partitions=(0, 2)).sealed().spans)),
    (Reason.RANGES, overlap),
    (Reason.RANGES, put("ranges", "from_offset", 101, 1)),
    (Reason.SUMS, head(weight=401.0)),
    (Reason.SUMS, head(counts=contribution(rows=100).sealed().counts)),
    (Reason.DEAD_LETTERS, letters(b"")),
    (Reason.DEAD_LETTERS, letters(contributed.letter(0, 3, 5))),
    (Reason.DEAD_LETTERS, letters(contributed.letter(1, 2, 5))),
    (Reason.DEAD_LETTERS, letters(contributed.letter(0, 2, 4))),
    (Reason.DEAD_LETTERS, letters(contributed.letter(0, 2, 5)[:-8])),
    (Reason.DEAD_LETTERS, letters(bytes(72))),
    (Reason.DEAD_LETTERS, head(letter_entries=2)),
    (Reason.BEGIN, put("ranges", "from_row", 1)),
    (Reason.END, put("ranges", "to_offset", 301, 3)),
    (Reason.END, put("ranges", "to_row", 1, 3)),
]
ENDS = {0: 200, 1: 300}


@pytest.mark.parametrize(("reason", "change"), WRONG, ids=[f"{at}-{each.name}" for at, (each, _) in enumerate(WRONG)])
def test_each_reason_is_found_alone(reason: Reason, change: Change) -> None:
    """A good contribution with one change is refused for that, and another host's is folded all the same."""
    draft = contribution(dead=2)
    change(draft)
    other = contributed.messages(contribution(host="b", life=life_of(2), partitions=(4,)))
    inbox = taken([*contributed.messages(draft), *other], ends=ENDS)
    assert [(each.host, each.reason) for each in inbox.refused] == [("a", reason)]
    assert [each.head.host for each in inbox.accepted] == ["b"]


def test_a_chunk_that_is_missing_or_altered_may_come_once_more() -> None:
    """The host sends the same again, and then it is whole."""
    base, state = contributed.large()
    sent = contributed.messages(replace(contribution(base), state=state))
    altered = Message(sent[2].key, value_of(sent[2])[:-1] + b"\x01")
    for wrong, reason in ((sent[:2] + sent[3:], Reason.INCOMPLETE), ([*sent[:2], altered, sent[3]], Reason.DIGEST)):
        assert [each.reason for each in taken(wrong, base).refused] == [reason]
        again = taken([*wrong, *sent], base)
        assert len(again.accepted) == 1 and not again.refused and not again.ignored


def test_chunks_of_other_sizes_are_altered() -> None:
    """Floats lie where a chunk's place says, so that none escapes the search for those that are not finite."""
    base, state = contributed.large()
    draft = replace(contribution(base), state=state)
    draft.sealed()
    cut = [draft.payload[: CHUNK_BYTES - 2], draft.payload[CHUNK_BYTES - 2 :]]
    draft.head["chunks"] = tuple(map(sha256, cut))
    offer, *_, last = contributed.messages(draft)
    chunks = [Message(f"{life_of(1)}/0/{at}".encode(), piece) for at, piece in enumerate(cut)]
    assert [each.reason for each in taken([offer, *chunks, last], base).refused] == [Reason.DIGEST]


def test_a_value_that_is_not_finite_is_found_in_every_chunk() -> None:
    base, state = contributed.large()
    for at in (0, CHUNK_BYTES - 4, CHUNK_BYTES, len(state) - 4):
        raw = bytearray(state)
        struct.pack_into("<f", raw, at, math.inf)
        sent = contributed.messages(replace(contribution(base), state=bytes(raw)))
        for keep in (True, False):
            assert [each.reason for each in taken(sent, base, keep_states=keep).refused] == [Reason.NOT_FINITE], at


def test_a_partition_is_folded_once() -> None:
    """The first in the topic is accepted: a host that lost its partition comes too late, whatever it has beside it."""
    first, second = (contributed.messages(contribution(host=host, life=life_of(at), partitions=(at, 2)))
                     for at, host in enumerate("ab"))  # fmt: skip
    for sent, names in (([*first, *second], "ab"), ([*second, *first], "ba")):
        inbox = taken(sent)
        assert [each.head.host for each in inbox.accepted] == [names[0]]
        assert [(each.host, each.reason, each.rows) for each in inbox.refused] == [(names[1], Reason.TAKEN, 400)]


def test_two_contributions_draw_different_random_numbers() -> None:
    """A host's numbers are those of its lowest partition, also where that one brought nothing."""
    seed = contribution_seed(BASE.seed, 3)
    drafts = [contribution(host=host, life=life_of(at), partitions=(at,)) for host, at in (("a", 4), ("b", 5))]
    for draft in drafts:
        terms(seed=seed)(draft)
    inbox = taken([found for draft in drafts for found in contributed.messages(draft)])
    assert [each.head.host for each in inbox.accepted] == ["a"]
    assert [(each.host, each.reason) for each in inbox.refused] == [("b", Reason.SEED)]


def test_the_base_is_what_the_manifest_says() -> None:
    spec = {"layers": [], "optimizer": {"name": "adam"}, "average_optimizer_state": True}
    folded = Contribution("a", life_of(1), 0, sha256(b"head"), 10, 10.0)
    newest = manifest(9, model_spec=spec, contributions=(folded,), inbox=3, interval_ms=1_000)
    base = Base.of(newest, sha256(b"digest"), contributed.SHAPE)
    assert (base.version, base.round, base.seed, base.folded) == (9, newest.round, newest.seed, {"a"})
    assert (base.positions, base.topic_id) == (newest.positions.partitions, newest.positions.topic_id)
    digests = columns_digest(newest.schema), model_digest(spec)
    assert (base.columns_digest, base.model_digest) == digests and base.optimizer == {"name": "adam"}


def test_what_is_no_contribution_to_the_next_snapshot_is_counted() -> None:
    sent = contributed.messages(contribution())
    late = contributed.messages(contribution(replace(BASE, version=6), life=life_of(2), sequence=3))
    forked = contributed.messages(contribution(replace(BASE, digest=sha256(b"another")), life=life_of(3)))
    inbox = taken([
        *late, *sent, *sent[1:], *forked, message(replace(HELLO, job="others")), Message(b"x", b"y"),
        Message(sent[0].key, None), Message(sent[-1].key, b"\xc1"),
    ])  # fmt: skip
    assert len(inbox.accepted) == 1 and not inbox.refused
    assert inbox.ignored == {
        Ignored.OTHER_BASE: len(late) + len(forked), Ignored.DOUBLED: len(sent) - 1, Ignored.OTHER_JOB: 1,
        Ignored.UNREADABLE: 3,
    }  # fmt: skip


def test_any_bytes_are_ignored_and_never_an_exception() -> None:
    """Also a head that is decoded, whatever it says of its chunks."""
    draw = random.Random(3)
    sent = contributed.messages(contribution(dead=2))
    for _ in range(400):
        inbox = Inbox(BASE)
        for offset, found in enumerate(sent):
            raw = bytearray(value_of(found))
            for _ in range(draw.choice((0, 0, 1, 3))):
                raw[draw.randrange(len(raw))] = draw.randrange(256)
            inbox.take(offset, found.key, bytes(raw[: draw.choice((len(raw), draw.randrange(len(raw) + 1)))]), 1.0)
        assert len(inbox.accepted) + len(inbox.refused) + inbox.ignored.total() <= len(sent)


def test_the_inbox_keeps_what_is_under_way() -> None:
    """The lowest offset that the next leader needs: of what is offered for this snapshot and has no head."""
    whole, half = contributed.messages(contribution()), contributed.messages(
        contribution(host="b", life=life_of(2), partitions=(4,))
    )
    late = contributed.messages(contribution(replace(BASE, version=6), host="c", life=life_of(3)))
    inbox = taken([*late[:1], *half[:1], *whole, half[1]])
    assert inbox.inbox == 1 and Inbox(BASE, start=17).inbox == 17
    inbox.take(6, half[-1].key, value_of(half[-1]), 1.0)
    assert inbox.inbox == 7


def test_a_layout_has_one_digest_on_all_hosts() -> None:
    """Name, type, rule and shape of each block count; floats are found by their place."""

    def shape(*blocks: tuple[str, str, str, list[int], str]) -> StateShape:
        return StateShape.of(StateLayout.make([StateBlockSpec(*each) for each in blocks]))

    w, n = ("w", "parameter", "learned", [4], "f32"), ("n", "optimizer", "sum", [3], "i64")
    found = shape(w, n)
    assert found.digest == shape(w, n).digest and [each[1:] for each in found.floats] == [("f32", 16)]
    others = [shape(w, (*n[:2], "highest", *n[3:])), shape(w), shape((*w[:3], [5], "f32"), n), shape(("v", *w[1:]), n)]
    assert len({found.digest, *(each.digest for each in others)}) == 5


def drawn(draw: random.Random) -> list[Message]:
    """The messages of some hosts, in some order, some of them lost or doubled; some hosts claim what others have."""
    hosts = []
    for number in range(draw.randrange(2, 7)):
        partitions = tuple(sorted(draw.sample(range(12), draw.randrange(1, 4))))
        draft = contribution(host=f"{number}", life=life_of(number), partitions=partitions, dead=draw.choice((0, 2)))
        if draw.random() < 0.2:
            draw.choice(WRONG)[1](draft)
        hosts.append(contributed.messages(draft))
    mixed: list[Message] = []
    while any(hosts):
        mixed.append(draw.choice([left for left in hosts if left]).pop(0))
    for _ in range(draw.randrange(4)):
        mixed.insert(draw.randrange(len(mixed)), draw.choice(mixed))
    for _ in range(draw.randrange(4)):
        mixed.pop(draw.randrange(len(mixed)))
    for _ in range(draw.randrange(3)):
        at, to = draw.randrange(len(mixed)), draw.randrange(len(mixed))
        mixed.insert(to, mixed.pop(at))
    return mixed


def test_whatever_happens_to_messages_each_partition_is_folded_once_from_where_the_snapshot_ends() -> None:
    """And the same messages in the same order give the same, from whichever offset they are counted."""
    seen = 0
    for seed in range(300):
        mixed = drawn(random.Random(seed))
        inbox, again = taken(mixed), Inbox(BASE, keep_states=False)
        for offset, found in zip(contributed.offsets(), mixed, strict=False):
            again.take(offset, found.key, value_of(found), float(seed))
        spans = [span for each in inbox.accepted for span in each.head.spans]
        assert len({span.partition for span in spans}) == len(spans)
        for span in spans:
            assert span.begin == BASE.positions[span.partition] < span.end
        assert all(each.head.spans == spans_of(each.log.ranges) for each in inbox.accepted)
        assert [each.head_digest for each in again.accepted] == [each.head_digest for each in inbox.accepted]
        assert again.refused == inbox.refused and again.ignored == inbox.ignored
        seen += len(inbox.accepted)
    assert seen > 300


# -- when the leader closes -------------------------------------------------------------------------------------------


def sent_by(host: str, at: int, **more: Any) -> list[Message]:
    return contributed.messages(contribution(host=host, life=life_of(at), partitions=(at,), **more))


def test_it_closes_at_once_when_all_hosts_have_answered() -> None:
    base = replace(BASE, folded=frozenset("ab"))
    inbox = taken(sent_by("a", 0), base, heard=["c"])
    assert inbox.expected == {"a", "b", "c"} and inbox.closes_at(50.0, 10.0, 2.0) == 1.0 + 2.0
    for found in (*sent_by("b", 1), contributed.empty(host="c", life=life_of(2))):
        inbox.take(9, found.key, value_of(found), 2.0)
    assert inbox.closes_at(50.0, 10.0, 2.0) == 50.0
    hello = message(HELLO)
    inbox.take(20, hello.key, value_of(hello), 2.5)
    assert inbox.closes_at(50.0, 10.0, 2.0) == 3.0 and inbox.expected == {"a", "b", "c", "host-b"}


def test_it_never_closes_without_a_contribution() -> None:
    """An empty head, an offer and one that is refused are none."""
    base = replace(BASE, folded=frozenset("ab"))
    draft = contribution(host="b", life=life_of(2))
    draft.head["job"] = "others"
    inbox = taken([contributed.empty(), *contributed.messages(draft)], base)
    assert inbox.answered == {"a", "b"} and inbox.closes_at(50.0, 10.0, 2.0) == math.inf


@pytest.mark.parametrize(("send_ms", "until_s"), [(100, 3.0), (1_000, 2.5 + 2.2), (60_000, 2.5 + 10.0)])
def test_an_offer_under_way_is_waited_for(send_ms: int, until_s: float) -> None:
    """So long as its host may take to send it, one interval at most, and not if it comes when all would be over."""
    base = replace(BASE, folded=frozenset("abc"))
    a, b, c = sent_by("a", 0), sent_by("b", 1, send_ms=send_ms), sent_by("c", 2, send_ms=60_000)
    inbox = taken([*a, b[0], c[0]], base, [*[1.0] * len(a), 2.5, 3.5])
    assert inbox.closes_at(3.5, 10.0, 2.0) == until_s
    for offset, found in enumerate(b[1:], 10):
        inbox.take(offset, found.key, value_of(found), 4.0)
    assert inbox.closes_at(4.0, 10.0, 2.0) == 3.0, "c's offer came after the grace"
    assert inbox.waited_s(7.0) == 3.0


def test_another_life_of_a_host_that_has_answered_is_waited_for() -> None:
    """Until it is known whose partitions they are, no offer is lost."""
    inbox = taken([*sent_by("a", 0), sent_by("a", 1, send_ms=3_000)[0]], replace(BASE, folded=frozenset("a")))
    assert inbox.closes_at(2.0, 10.0, 2.0) == 1.0 + 6.2


def test_an_early_contribution_starts_no_grace() -> None:
    """Only its own round closed before its time; if all others are gone, an interval after it is in phase."""
    base = replace(BASE, folded=frozenset("abc"))
    early = sent_by("a", 0, early=True)
    inbox = taken(early, base)
    assert inbox.closes_at(1.0, 10.0, 2.0) == 1.0 + 10.0 + 2.0
    for offset, found in enumerate(sent_by("b", 1), 10):
        inbox.take(offset, found.key, value_of(found), 4.0)
    assert inbox.closes_at(4.0, 10.0, 2.0) == 6.0


def test_a_contribution_that_is_altered_is_not_waited_for() -> None:
    a, b = sent_by("a", 0), sent_by("b", 1)
    inbox = taken([*a, b[0], Message(b[1].key, b"altered"), b[2]], replace(BASE, folded=frozenset("ab")))
    assert inbox.closes_at(7.0, 10.0, 2.0) == 7.0 and [each.reason for each in inbox.refused] == [Reason.DIGEST]


def test_the_hosts_that_are_expected_are_those_heard_since_the_snapshot_before() -> None:
    """A host that was neither folded nor heard for a sync is thought to be gone, and so is a stranger."""
    inbox = taken([*sent_by("a", 0)[:1], contributed.empty(host="b")], heard="c")
    assert inbox.heard == {"a", "b"} and inbox.expected == {"a", "b", "c"}
    following = Inbox(replace(BASE, version=8, folded=frozenset()), heard=inbox.heard)
    assert following.expected == {"a", "b"}
    stranger = contribution()
    stranger.head["job"] = "others"
    assert taken(contributed.messages(stranger)).heard == set()


def test_grace_and_interval() -> None:
    """A sync is so long that hosts train six parts of seven, however one of the last ones went."""
    assert grace(1.0, []) == 0.2 and grace(10.0, [0.1]) == 1.5 and grace(1.0, [0.5, 0.5, 9.0]) == 1.0
    assert interval(1.0, []) == 1.0 and interval(1.0, [0.1, 0.1]) == 1.0 and interval(1.0, [0.5, 0.5, 40.0]) == 3.0


def sync(pace: Pace, idle_ms: int, closed_s: float = 1.0, at_s: Sequence[float] = (1.0, 1.0)) -> float:
    """Adds a sync of two hosts, whose contributions come when `at_s` says, and gives the interval after it."""
    sent = [sent_by(host, at, idle_ms=idle_ms) for at, host in enumerate("ab")]
    times = [when for one, when in zip(sent, at_s, strict=True) for _ in one]
    pace.add(taken([*sent[0], *sent[1]], at_s=times), closed_s)
    return pace.interval_s


def test_a_new_leader_keeps_the_pace_of_the_one_before() -> None:
    """Until most of the last syncs were otherwise. A sync that waited for a leader is no reason."""
    pace = Pace(1.0, 6.0)
    assert pace.interval_s == 6.0 and pace.grace_s == pytest.approx(0.9)
    assert sync(pace, 11_000) == 6.0 and Pace(1.0, 0.5).interval_s == 1.0
    assert [sync(pace, 2_000) for _ in range(9)] == [6.0, 6.0, 6.0, *[12.0] * 6]


def test_the_wait_of_the_leader_does_not_make_the_next_interval_longer() -> None:
    """It grows with the interval: each would make the other longer without an end."""
    pace = Pace(1.0, 6.0)
    assert [sync(pace, 4_000, closed_s=1.0 + 3.0) for _ in range(9)][-1] == 6.0


def test_the_spread_is_that_of_nine_of_ten_offers() -> None:
    """Only those in phase count. One that comes late makes no leader wait longer for the next."""
    offers = [sent_by(f"{at}", at, early=at == 0)[0] for at in range(12)]
    inbox = taken(offers, at_s=[0.0, *(5.0 + 0.1 * at for at in range(10)), 99.0])
    assert inbox.spread_s == pytest.approx(0.9) and taken([]).spread_s is None
    pace = Pace(1.0, 1.0)
    sync(pace, 0, at_s=(1.0, 2.0))
    assert pace.grace_s == pytest.approx(2 * 0.9)


def test_a_head_says_how_long_its_host_did_not_train() -> None:
    assert taken(contributed.messages(contribution(idle_ms=1_500))).idle_s == {"a": 1.5}


def test_round_settings_may_differ_between_hosts() -> None:
    """So a rolling update works."""
    own = replace(TERMS, workers=4, build="0.2.0", learning_rate={"name": "constant", "rate": 0.5})
    assert len(taken(contributed.messages(contribution(terms=own))).accepted) == 1



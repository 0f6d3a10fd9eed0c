"""Changes one thing in a job's topics and mends all that follows mechanically: digests, parents, chain. Every field of
a decoded message is found by walking it, so a field added later is too; whole messages by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from typing import Any

import msgpack
import numpy as np

from streamtrain.errors import StreamtrainError
from streamtrain.job.job import settings_digest
from streamtrain.kafka.clients import Message
from streamtrain.topics import rounds, shelves
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE, RoundLog
from streamtrain.topics.shelves import is_manifest
from streamtrain.topics.topic import sha256
from tests.checks.verify.topics_in_memory import Written

Edit = Callable[[Any], None]


def unpacked(value: bytes | None) -> Any:
    return msgpack.unpackb(value or b"", raw=False)


def packed(document: Any) -> bytes:
    return msgpack.packb(document, use_bin_type=True)


def tables(document: Any) -> tuple[Any, Any]:
    """The ranges and slots of a round log, to change and to put back."""
    return np.frombuffer(document["ranges"], RANGE_DTYPE).copy(), np.frombuffer(document["slots"], SLOT_DTYPE).copy()


def put_tables(document: Any, ranges: Any, slots: Any) -> None:
    document |= {"ranges": ranges.tobytes(), "slots": slots.tobytes()}


def copied(written: Written) -> Written:
    """A copy with lists of its own; messages are never changed in place."""
    partitions = {
        key: [replace(each, messages=[*each.messages]) for each in found] for key, found in written.partitions.items()
    }
    return replace(written, partitions=partitions, topic_ids=dict(written.topic_ids))


def edited(written: Written, version: int, edit: Edit) -> Written:
    return Forger(written, {version: edit}, {version: edit}).forged()


@dataclass
class Forger:
    """Copies `written`, applies edits to decoded manifests, logs and control entries by version or key, and mends."""

    written: Written
    manifests: dict[int, Edit] = field(default_factory=dict)
    logs: dict[int, Edit] = field(default_factory=dict)

    def forged(self) -> Written:
        self._copy = copied(self.written)
        self._digests: dict[bytes, bytes] = {}
        self._chains: dict[str, bytes] = {}
        manifests = {unpacked(each.value)["version"]: each for each in self._messages("snapshots", is_manifest)}
        logs: dict[int, list[Message]] = {}
        for message in self._copy.partitions["rounds"][0].messages:
            logs.setdefault(unpacked(message.value)["version"], []).append(message)
        for version in sorted({*manifests, *logs}):
            self._version(version, manifests.get(version), logs.get(version, []))
        self._mend_others()
        return self._copy

    def _messages(self, key: str, matches: Callable[[bytes | None], bool]) -> list[Message]:
        return [each for each in self._copy.partitions[key][0].messages if matches(each.key) and each.value is not None]

    def _replace(self, key: str, old: Message, value: bytes, message_key: bytes | None = None) -> None:
        messages = self._copy.partitions[key][old.partition].messages
        index = next(at for at, message in enumerate(messages) if message is old)
        messages[index] = old._replace(value=value, key=old.key if message_key is None else message_key)

    def _version(self, version: int, manifest: Message | None, parts: list[Message]) -> None:
        log_documents = [unpacked(part.value) for part in parts]
        if version in self.logs:
            for document in log_documents:
                self.logs[version](document)
        document = None if manifest is None else unpacked(manifest.value)
        lineage = document["lineage"] if document is not None else log_documents[0]["lineage"]
        self._chains[lineage] = self._chain(self._chains.get(lineage), lineage, parts, log_documents)
        if manifest is not None and document is not None:
            old = sha256(manifest.value or b"")
            document["chain"] = self._chains[lineage]
            for named in filter(None, (document["parent"], document["restored"])):
                named["digest"] = self._digests.get(named["digest"], named["digest"])
            for entry in document["kept"]:
                entry[3] = self._digests.get(entry[3], entry[3])
            if version in self.manifests:
                before = deepcopy(document)
                self.manifests[version](document)
                if document["job_settings"] != before["job_settings"]:
                    document["config_digest"] = settings_digest(document["job_settings"])
            value = packed(document)
            self._digests[old] = sha256(value)
            key = shelves.manifest_key(document["shelf"]) if type(document["shelf"]) is str else None
            self._replace("snapshots", manifest, value, key)
        for part, log_document in zip(parts, log_documents, strict=True):
            if version not in self.logs or log_document["digest"] == unpacked(part.value)["digest"]:
                log_document["digest"] = self._digests.get(log_document["digest"], log_document["digest"])
            key = "{version}/{contribution}/{part}".format(**log_document).encode()
            self._replace("rounds", part, packed(log_document), key)

    def _chain(self, before: bytes | None, lineage: str, parts: list[Message], documents: list[Any]) -> bytes:
        """The chain after this version; where the log is none any more, as if it had not been changed."""
        chain = rounds.first_chain(lineage) if before is None else before
        if not parts:
            return chain
        try:
            return reduce(rounds.chain_after, _logs([packed(document) for document in documents]), chain)
        except (StreamtrainError, ValueError, TypeError, IndexError, KeyError):
            return reduce(rounds.chain_after, _logs([part.value or b"" for part in parts]), chain)

    def _mend_others(self) -> None:
        """Mends the digests of snapshots in control and in predictions."""
        for message in self._messages("control", lambda key: key == b"newest"):
            document = unpacked(message.value)
            document["digest"] = self._digests.get(document["digest"], document["digest"])
            self._replace("control", message, packed(document))
        digests = {old.hex().encode(): new.hex().encode() for old, new in self._digests.items()}
        for partition in self._copy.partitions["predictions"]:
            partition.messages = [
                message._replace(headers=[(name, digests.get(value or b"", value)) for name, value in message.headers])
                for message in partition.messages
            ]


def _logs(values: list[bytes]) -> Iterator[RoundLog]:
    """The logs of a publication, from its parts in order."""
    for _, parts in groupby(map(rounds.decode, values), key=lambda part: part.contribution):
        yield rounds.join([*parts])


Path = tuple[Any, ...]  # keys of maps, indices of lists, ("dtype", index, field) in a column of structs
COLUMNS = {"rounds": ROUND_DTYPE, "slots": SLOT_DTYPE, "ranges": RANGE_DTYPE}


def paths(document: Any, at: Path = (), whole: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Every leaf: of a column of structs each field of the middle one, of a list the first and last item; fields named
    in `whole` are leaves."""
    if at and at[-1] in whole:
        yield at
    elif isinstance(document, dict):
        for key, value in document.items():
            if len(at) == 0 and key in COLUMNS and isinstance(value, bytes):
                middle = len(value) // COLUMNS[key].itemsize // 2
                names = COLUMNS[key].names if value else ()
                yield from ((key, middle, name) for name in names or ())
            else:
                yield from paths(value, (*at, key), whole)
        yield (*at, ADDED)
    elif isinstance(document, list) and document:
        for index in sorted({0, len(document) - 1}):
            yield from paths(document[index], (*at, index), whole)
        yield (*at, DROPPED)
    else:
        yield at


ADDED = "+a field nobody knows"
DROPPED = "-the last"


def changed(value: Any) -> Any:
    """Another value of the same type, as little different as can be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + (1 if isinstance(value, int) else 0.5)
    if isinstance(value, dict):
        return {**value, ADDED: 1}
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"x"
    if isinstance(value, str):
        return _changed_text(value)
    return 1 if value is None else [*value, 1]


def _changed_text(text: str) -> str:
    """Another hex digit, another number in it, or another last letter."""
    if re.fullmatch("[0-9a-f]{16,}", text):
        return ("1" if text[0] == "0" else "0") + text[1:]
    if number := re.search(r"\d+$", text):
        digits = number.group()
        return text[: number.start()] + str(int(digits) + 1).zfill(len(digits))
    return text + "x"


def put(document: Any, path: Path, change: Callable[[Any], Any] = changed) -> None:
    if len(path) == 3 and path[0] in COLUMNS and isinstance(document[path[0]], bytes):
        column = np.frombuffer(document[path[0]], COLUMNS[path[0]]).copy()
        cells = column[path[2]]
        where = path[1] if cells.ndim == 1 else (path[1], 0)
        cells[where] = changed(cells[where].item())
        document[path[0]] = column.tobytes()
        return
    *way, last = path
    for step in way:
        document = document[step]
    if last == ADDED:
        document[ADDED] = 1
    elif last == DROPPED:
        document.pop()
    else:
        document[last] = change(document[last])


def variants(value: Any, read: Callable[[Any], Any], write: Callable[[Any], Any]) -> Iterator[tuple[Path, Any]]:
    """Changes each leaf of a text or bytes, by its path."""
    for path in paths(read(value)):
        document = read(value)
        put(document, path)
        yield path, write(document)


GARBAGE = b"\xc1garbage"


def forged(written: Written, name: str) -> Written:
    """Returns the forgery of this name, of a copy."""
    copy = copied(written)
    other = FORGERIES[name](copy)
    return other if isinstance(other, Written) else copy


def messages(written: Written, topic: str, partition: int = 0) -> list[Message]:
    return written.partitions[topic][partition].messages


def versions(written: Written) -> list[int]:
    return sorted({unpacked(message.value)["version"] for message in messages(written, "rounds")})


def drop(written: Written, topic: str, gone: Callable[[Message], bool]) -> None:
    messages(written, topic)[:] = [each for each in messages(written, topic) if not gone(each)]


def drop_logs(written: Written, gone: Callable[[int], bool]) -> None:
    drop(written, "rounds", lambda each: gone(unpacked(each.value)["version"]))


def drop_part(written: Written, part: int) -> None:
    """Drops a part of the log that has several."""
    logs = [unpacked(each.value) for each in messages(written, "rounds")]
    version = next(log["version"] for log in logs if log["part"] == 1)
    drop(written, "rounds", lambda each: unpacked(each.value).items() >= {"version": version, "part": part}.items())


def append_again(written: Written, topic: str, index: int) -> None:
    first = messages(written, topic)[index]
    written.append(topic, first.value, first.key, first.headers)


def change(written: Written, topic: str, index: int, **changes: Any) -> None:
    found = messages(written, topic)
    found[index] = found[index]._replace(**changes)


def set_headers(written: Written, topic: str, index: int, **changes: bytes) -> None:
    """Changes values of headers by their names without the prefix."""
    before = messages(written, topic)[index].headers
    headers = [(name, changes.get(name.removeprefix("streamtrain-"), value)) for name, value in before]
    change(written, topic, index, headers=headers)


def recounted(written: Written, version: int, choose: Callable[[Any], Any], **more: dict[str, int]) -> Written:
    """Tells a consistent lie: adds to fields of the range of a log that `choose` takes (`ranges`), of its batch
    (`slots`) and, by their paths, of the lineage's manifests from there on (`manifests`)."""
    lineage = unpacked(messages(written, "rounds")[-1].value)["lineage"]

    def log(document: Any) -> None:
        ranges, slots = tables(document)
        index = int(choose(ranges)[0])
        slot = int(np.searchsorted(np.cumsum(slots["range_count"]), index, side="right"))
        for table, at, changes in ((ranges, index, more["ranges"]), (slots, slot, more["slots"])):
            for name, count in changes.items():
                table[name][at] = int(table[name][at]) + count
        put_tables(document, ranges, slots)

    def manifest(document: Any) -> None:
        for path, count in more["manifests"].items() if document["lineage"] == lineage else ():
            steps = tuple(int(step) if step.isdigit() else step for step in path.split("."))
            put(document, steps, lambda before, count=count: before + count)

    later = [each for each in versions(written) if each >= version]
    return Forger(written, dict.fromkeys(later, manifest), {version: log}).forged()


def drop_the_first_log_and_one_in_the_middle(written: Written) -> None:
    drop_logs(written, lambda version: version in (2, 5))
    written.partitions["rounds"][0].low = messages(written, "rounds")[0].offset


def make_the_round_log_anew(written: Written) -> None:
    messages(written, "rounds").clear()
    written.partitions["rounds"][0].end = 0


def leave_two_rows_out(written: Written) -> Written:
    def of_many(ranges: Any) -> Any:
        return np.flatnonzero(ranges["trained"] >= 3)

    less = {"slots": {"trained": -2, "rows": -2}, "manifests": {"counts.trained": -2, "rows_seen": -2}}
    return recounted(written, versions(written)[-3], of_many, ranges={"trained": -2}, **less)


def swap_logs(written: Written) -> None:
    found = messages(written, "rounds")
    found[0], found[-1] = found[-1]._replace(offset=found[0].offset), found[0]._replace(offset=found[-1].offset)


def bump_a_position_without_a_range(written: Written) -> Written:
    newest = versions(written)[-1]
    logs = [unpacked(each.value) for each in messages(written, "rounds") if unpacked(each.value)["version"] == newest]
    quiet = min({0, 1, 2} - {number for log in logs for number in tables(log)[0]["partition"].tolist()})

    def bump(document: Any) -> None:
        document["positions"]["partitions"][quiet][0] += 1

    return Forger(written, {newest: bump}).forged()


def change_the_topic_id(written: Written) -> Written:
    def of_terms(document: Any) -> None:
        for terms in document["terms"]:
            terms["topic_id"] = "another"

    def of_manifest(document: Any) -> None:
        document["positions"]["topic_id"] = "another"

    newest = versions(written)[-1]
    return Forger(written, {newest: of_manifest}, {newest: of_terms}).forged()


def drop_the_newest_snapshot(written: Written) -> None:
    found = messages(written, "snapshots")
    manifests = [at for at, each in enumerate(found) if (each.key or b"").endswith(b"/m")]
    del found[manifests[-2] + 1 :]


def letter_of_rows(written: Written) -> int:
    """The newest dead letter in partition 0 whose record is all there."""
    found = messages(written, "dead_letters")
    return next(
        at for at in reversed(range(len(found)))
        if found[at].value is not None and dict(found[at].headers)["streamtrain-partition"] == b"0"
        and not any(dict(found[at].headers)["streamtrain-rows"].startswith(b"[[%d" % row) for row in range(1, 9))
    )  # fmt: skip


def drop_the_letter_of_a_batch(written: Written) -> None:
    found = messages(written, "dead_letters")
    del found[next(at for at, each in enumerate(found) if "streamtrain-until" in dict(each.headers))]


def swap_values_of_letters(written: Written) -> None:
    found = messages(written, "dead_letters")
    one = letter_of_rows(written)
    other = next(at for at in reversed(range(one)) if found[at].value not in (None, found[one].value))
    for at, value in ((one, found[other].value), (other, found[one].value)):
        change(written, "dead_letters", at, value=value)
        set_headers(written, "dead_letters", at, bytes=b"%d" % len(value or b""))


def change_the_offset_of_a_letter(written: Written) -> None:
    at = letter_of_rows(written)
    offset = int(dict(messages(written, "dead_letters")[at].headers)["streamtrain-offset"])
    set_headers(written, "dead_letters", at, offset=b"%d" % (offset + 1))


def change_the_reason_of_a_letter(written: Written) -> None:
    at = letter_of_rows(written)
    headers = dict(messages(written, "dead_letters")[at].headers)
    rows = headers["streamtrain-rows"].replace(headers["streamtrain-reason"], b"another reason")
    set_headers(written, "dead_letters", at, reason=b"another reason", rows=rows)


def give_another_snapshots_digest(written: Written) -> None:
    other = dict(messages(written, "predictions")[-1].headers)["streamtrain-digest"]
    set_headers(written, "predictions", 2, digest=other)


def fill_a_hole(written: Written) -> None:
    partition = written.partitions["records"][0]
    taken = {message.offset for message in partition.messages}
    hole = next(offset for offset in range(partition.messages[0].offset, partition.end) if offset not in taken)
    at = next(index for index, message in enumerate(partition.messages) if message.offset > hole)
    partition.messages.insert(at, partition.messages[0]._replace(offset=hole))


def replace_a_record_of_many_rows(written: Written) -> None:
    found = messages(written, "records")
    many = next(at for at, each in enumerate(found) if each.value is not None and each.value[0] & 0xF0 == 0x90)
    change(written, "records", many, value=found[0].value)


FORGERIES: dict[str, Callable[[Written], Any]] = {
    # the round log
    "the newest log is missing": lambda written: drop_logs(written, versions(written)[-1:].__contains__),
    "the newest three logs are missing": lambda written: drop_logs(written, versions(written)[-3:].__contains__),
    "all logs are missing": lambda written: drop_logs(written, lambda version: True),
    "the round log is made anew": make_the_round_log_anew,
    "the first log is missing": lambda written: drop_logs(written, lambda version: version == 2),
    "a log in the middle is missing": lambda written: drop_logs(written, lambda version: version == 5),
    "the first log of a restored lineage is missing": lambda written: drop_logs(written, lambda version: version == 10),
    "a log in the middle is missing and retention took the first": drop_the_first_log_and_one_in_the_middle,
    "the first part of a log is missing": lambda written: drop_part(written, 0),
    "the second part of a log is missing": lambda written: drop_part(written, 1),
    "a log is there twice": lambda written: append_again(written, "rounds", 0),
    "two logs are swapped": swap_logs,
    "a tombstone in the round log": lambda written: written.append("rounds", None, b"3/0"),
    "garbage in the round log": lambda written: written.append("rounds", GARBAGE, b"3/0"),
    "two rows of a record of many are not trained": leave_two_rows_out,
    # manifests and snapshots
    "a thousand rows seen more everywhere": lambda written: Forger(
        written, dict.fromkeys(range(1, 100), lambda document: document.update(rows_seen=document["rows_seen"] + 1000))
    ).forged(),
    "a position bumped where the log has no range": bump_a_position_without_a_range,
    "another topic id without a gap": change_the_topic_id,
    "a run that control does not know": lambda written: edited(
        written, versions(written)[-1], lambda document: document.update(run={"number": 99, "id": "ab" * 16})
    ),
    "another lineage in manifest and log": lambda written: edited(
        written, versions(written)[-1], lambda document: document.update(lineage="ab" * 16)
    ),
    "the newest snapshot is gone": drop_the_newest_snapshot,
    "a chunk is missing": lambda written: messages(written, "snapshots").pop(-2),
    "a chunk is altered": lambda written: change(
        written, "snapshots", -2, value=changed(messages(written, "snapshots")[-2].value)
    ),
    "a chunk of no snapshot": lambda written: written.append("snapshots", b"chunk", b"s/0099/c/0000"),
    "garbage in the snapshots": lambda written: written.append("snapshots", GARBAGE, b"s/0001/m"),
    "a message without a key in the snapshots": lambda written: written.append("snapshots", b"value"),
    "a tombstone of the newest manifest": lambda written: written.append(
        "snapshots", None, messages(written, "snapshots")[-1].key
    ),
    # control
    "control is empty": lambda written: messages(written, "control").clear(),
    "a run is missing in control": lambda written: drop(written, "control", lambda each: each.key == b"run/2"),
    "control names no newest": lambda written: drop(written, "control", lambda each: each.key == b"newest"),
    "garbage in control": lambda written: written.append("control", GARBAGE, b"run/2"),
    # dead letters
    "a dead letter is missing": lambda written: messages(written, "dead_letters").pop(5),
    "the letter of a batch left out is missing": drop_the_letter_of_a_batch,
    "a dead letter is there twice": lambda written: append_again(written, "dead_letters", 5),
    "a dead letter of an unknown run": lambda written: set_headers(written, "dead_letters", 5, run=b"77"),
    "a dead letter of a round never published": lambda written: set_headers(written, "dead_letters", 5, round=b"7777"),
    "two dead letters have changed their values": swap_values_of_letters,
    "a dead letter names another offset": change_the_offset_of_a_letter,
    "a dead letter tells another reason": change_the_reason_of_a_letter,
    "garbage in the dead letters": lambda written: written.append(
        "dead_letters", b"garbage", b"k", [("streamtrain-wire", b"1")]
    ),
    # predictions
    "a prediction is committed twice": lambda written: append_again(written, "predictions", 2),
    "a request was never answered": lambda written: messages(written, "predictions").pop(1),
    "a prediction of version abc": lambda written: set_headers(written, "predictions", 2, version=b"abc"),
    "a prediction of a version to come": lambda written: set_headers(written, "predictions", 2, version=b"99"),
    "a prediction with another snapshots digest": give_another_snapshots_digest,
    "a prediction of a request that is not there": lambda written: set_headers(
        written, "predictions", 2, offset=b"5000"
    ),
    "garbage in the predictions": lambda written: written.append("predictions", b"{", b"k"),
    "a prediction without headers": lambda written: change(written, "predictions", 2, headers=[]),
    # records
    "a record lies in a hole": fill_a_hole,
    "a record is missing": lambda written: messages(written, "records").pop(-4),
    "a record has become another": replace_a_record_of_many_rows,
}

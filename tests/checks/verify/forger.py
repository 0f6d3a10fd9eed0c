"""Changes one thing in a job's topics and mends all that follows mechanically: digests, parents, chain."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import msgpack
import numpy as np

from streamtrain.errors import StreamtrainError
from streamtrain.job.job import settings_digest
from streamtrain.kafka.clients import Message
from streamtrain.topics import rounds, shelves
from streamtrain.topics.rounds import RANGE_DTYPE, SLOT_DTYPE
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
        self._made = copied(self.written)
        self._digests: dict[bytes, bytes] = {}
        self._chains: dict[str, bytes] = {}
        manifests = {unpacked(each.value)["version"]: each for each in self._messages("snapshots", is_manifest)}
        logs: dict[int, list[Message]] = {}
        for message in self._made.partitions["rounds"][0].messages:
            logs.setdefault(unpacked(message.value)["version"], []).append(message)
        for version in sorted({*manifests, *logs}):
            self._version(version, manifests.get(version), logs.get(version, []))
        self._mend_others()
        return self._made

    def _messages(self, key: str, wanted: Callable[[bytes | None], bool]) -> list[Message]:
        return [each for each in self._made.partitions[key][0].messages if wanted(each.key) and each.value is not None]

    def _replace(self, key: str, old: Message, value: bytes, message_key: bytes | None = None) -> None:
        messages = self._made.partitions[key][old.partition].messages
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
            key = f"{log_document['version']}/{log_document['part']}".encode()
            self._replace("rounds", part, packed(log_document), key)

    def _chain(self, before: bytes | None, lineage: str, parts: list[Message], documents: list[Any]) -> bytes:
        """The chain after this version; where the log is none any more, as if it had not been changed."""
        chain = rounds.first_chain(lineage) if before is None else before
        if not parts:
            return chain
        try:
            return rounds.chain_after(chain, rounds.join([rounds.decode(packed(document)) for document in documents]))
        except (StreamtrainError, ValueError, TypeError, IndexError, KeyError):
            return rounds.chain_after(chain, rounds.join([rounds.decode(part.value or b"") for part in parts]))

    def _mend_others(self) -> None:
        """Mends the digests of snapshots in control and in predictions."""
        for message in self._messages("control", lambda key: key == b"newest"):
            document = unpacked(message.value)
            document["digest"] = self._digests.get(document["digest"], document["digest"])
            self._replace("control", message, packed(document))
        digests = {old.hex().encode(): new.hex().encode() for old, new in self._digests.items()}
        for partition in self._made.partitions["predictions"]:
            partition.messages = [
                message._replace(headers=[(name, digests.get(value or b"", value)) for name, value in message.headers])
                for message in partition.messages
            ]

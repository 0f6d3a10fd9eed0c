"""Which requests were answered: none twice, where predictors deliver exactly once, and none left out between others."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamtrain.checks.verify.topics import ReadTopics
from streamtrain.checks.verify.verify_report import Check
from streamtrain.record_sources.source_kind import Partition
from streamtrain.topics.predictions import OFFSET_HEADER, PARTITION_HEADER

_ON_THE_WAY_MS = 15_000  # a transaction of a predictor that is still open, or half visible, is younger


def whole_number(raw: bytes | None) -> int | None:
    """The number a header holds, None where it holds none."""
    return int(raw) if raw is not None and raw.isdigit() and len(raw) <= 19 else None


@dataclass
class _OffsetBits:
    """One partition of the requests; a bit for each offset that was answered."""

    bits: bytearray = field(default_factory=bytearray)
    first: int = -1  # the lowest answered
    settled: int = -1  # the highest answered that is not on the way

    def put(self, offset: int) -> bool:
        """False where it was answered before."""
        byte, bit = offset >> 3, 1 << (offset & 7)
        if byte >= len(self.bits):
            self.bits.extend(bytes(max(byte + 1 - len(self.bits), len(self.bits), 1024)))
        before = self.bits[byte] & bit
        self.bits[byte] |= bit
        self.first = offset if self.first < 0 else min(self.first, offset)
        return not before

    def __contains__(self, offset: int) -> bool:
        return offset >> 3 < len(self.bits) and bool(self.bits[offset >> 3] & 1 << (offset & 7))


class Answered:
    """A bit of memory for each request answered."""

    def __init__(self, topics: ReadTopics) -> None:
        self._topics = topics
        self._requests: list[Partition] = list(topics.requests.partitions) if topics.requests else []
        self._bits = [_OffsetBits() for _ in self._requests]
        self._twice: dict[tuple[int, int], str] = {}
        self._begins_ms: int | None = None

    def take(self, check: Check, where: str, timestamp_ms: int, request: tuple[int, int]) -> None:
        """The next prediction, which answers `request` (partition, offset)."""
        partition, offset = request
        if partition >= len(self._requests) or offset >= self._requests[partition].end:
            earlier = timestamp_ms < self._first_request_ms()
            if earlier:
                check.not_checkable.append(f"{where}: answers a request of a topic that was there before this one")
            check.expect(earlier, f"{where}: answers request {partition}@{offset}, which is not there")
            return
        bits = self._bits[partition]
        if not bits.put(offset):
            self._twice[request] = where
        if timestamp_ms < self._topics.looked_ms - _ON_THE_WAY_MS:
            bits.settled = max(bits.settled, offset)

    def _first_request_ms(self) -> int:
        if self._begins_ms is None:
            firsts = [next(iter(each.read(each.low, each.end)), None) for each in self._requests]
            self._begins_ms = min((first.timestamp_ms for first in firsts if first), default=2**63)
        return self._begins_ms

    def finish(self, check: Check, fast: bool) -> None:
        if self._twice and self._topics.exactly_once:
            self._check_twice(check)
        elif self._twice:
            check.not_checkable.append(
                f"{len(self._twice)} requests were answered twice, which at_least_once may do after a failure"
            )
        if fast:
            return
        assert self._topics.predictions is not None
        if self._topics.predictions.cut:
            check.not_checkable.append("requests that were not answered: older predictions are removed by retention")
            return
        for number, (partition, bits) in enumerate(zip(self._requests, self._bits, strict=True)):
            for request in partition.read(max(bits.first, 0), bits.settled):
                text = f"request {number}@{request.offset} has no answer, later ones have"
                check.expect(request.offset in bits, text)

    def _check_twice(self, check: Check) -> None:
        """Unless the first answer is older than the request: then it was to a topic that was there before this one."""
        request_ms = {}
        for number, partition in enumerate(self._requests):
            offsets = [offset for at, offset in self._twice if at == number]
            for request in partition.read(min(offsets, default=0), max(offsets, default=-1) + 1):
                if (number, request.offset) in self._twice:
                    request_ms[number, request.offset] = request.timestamp_ms
        counts = dict.fromkeys(self._twice, 0)
        assert self._topics.predictions is not None
        for message in self._topics.predictions.messages():
            headers = dict(message.headers)
            partition_, offset = (whole_number(headers.get(name)) for name in (PARTITION_HEADER, OFFSET_HEADER))
            request_ = (-1 if partition_ is None else partition_, -1 if offset is None else offset)
            if request_ in counts and message.timestamp_ms >= request_ms.get(request_, 0):
                counts[request_] += 1
        for (number, offset), where in self._twice.items():
            times = counts[number, offset]
            check.expect(times <= 1, f"{where}: request {number}@{offset} was answered {times} times")
        earlier = sum(count <= 1 for count in counts.values())
        if earlier:
            text = f"{earlier} predictions answer requests of a topic that was there before this one"
            check.not_checkable.append(text)

"""One fold over the job's history: state N - 1 plus log N is state N, in every field and every partition.

Guarantees 1, 2 and 4. A log that is missing is a failure, unless retention has removed it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from streamtrain._native import CloseReason
from streamtrain.checks.verify.beginnings import came_from, check_beginning
from streamtrain.checks.verify.frontier import FirstOffsets, Frontier
from streamtrain.checks.verify.logs import Logs
from streamtrain.checks.verify.snapshot_check import Snapshots, passes_over
from streamtrain.checks.verify.verify_report import Check
from streamtrain.topics.chunks import Located
from streamtrain.topics.log_rules import broken
from streamtrain.topics.manifest import Counts, Imported, Manifest, Run
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.rounds import RoundLog, chain_after, counts_after, first_chain

_NONE_YET = Run(0, "")  # before a job's first
_LAST_OF_A_RUN = (CloseReason.DRAINED, CloseReason.END)


@dataclass
class _State:
    """The state known after a snapshot. None means unknown, because its source is gone."""

    lineage: str
    version: int
    frontier: Frontier
    round: int | None = None
    rows_seen: int | None = None
    seed: int | None = None
    chain: bytes | None = None
    counts: Counts | None = None
    gaps: tuple[Any, ...] | None = None
    imported: tuple[Imported, ...] | None = None
    run: Run | None = None
    next_slot: int | None = None  # of `run`, as the next two, where one host trains the job
    closed_by: int | None = None  # the run's newest round
    worker_deaths: int = 0
    inbox: int | None = None
    located: Located | None = None

    @classmethod
    def of(cls, located: Located) -> _State:
        manifest = located.manifest
        return cls(
            manifest.lineage,
            manifest.version,
            Frontier.of(manifest.positions),
            round=manifest.round,
            rows_seen=manifest.rows_seen,
            seed=manifest.seed,
            chain=manifest.chain,
            counts=manifest.counts,
            gaps=manifest.gaps,
            imported=manifest.imported,
            run=manifest.run,
            inbox=manifest.inbox,
            located=located,
        )

    @classmethod
    def unknown(cls, lineage: str, version: int) -> _State:
        return cls(lineage, version, Frontier(None, {}, whole=False))


@dataclass
class Fold:
    """Goes over everything held, by version."""

    snapshots: Snapshots
    logs: Logs
    first_offsets: FirstOffsets
    lineage: Check = field(
        default_factory=lambda: Check("lineage", "each snapshot is the one before it and its round log, in every field")
    )
    tiling: Check = field(
        default_factory=lambda: Check("tiling", "the ranges tile every partition: no row trained twice, none skipped")
    )

    def run(self) -> list[Check]:
        self._manifests = {located.manifest.version: located for located in self.snapshots.manifests}
        self._logs: dict[int, RoundLogs] = {}
        self._sequences: dict[str, int] = {}  # the newest contribution of each life of a host
        publications = self.logs.publications
        for before, log in zip((None, *publications), publications, strict=False):
            if before is not None and log.version <= before.version:
                self.lineage.problems.append(f"the round log of snapshot {log.version} comes after {before.version}'s")
            self._logs[log.version] = log
        self._left: set[str] = set()  # lineages that others have followed
        self._seen = {(-1, 0)}  # (round, rows seen) of everything a lineage may begin with: fresh, or restored
        self._state: _State | None = None
        for version in sorted({*self._manifests, *self._logs}):
            self._pass(version)
        self.lineage.span = f"{len(self._manifests)} manifests, {len(self.logs.all)} round logs"
        self.tiling.span = f"{sum(len(log.ranges) for log in self.logs.all)} ranges of {len(self._logs)} publications"
        return [self.lineage, self.tiling]

    def _pass(self, version: int) -> None:
        located, log = self._manifests.get(version), self._logs.get(version)
        if log is None:
            assert located is not None
            if located.manifest.chain == first_chain(located.manifest.lineage):
                self._begin(located)
            else:
                self._missing(self._state.version + 1 if self._state else version, version, located.manifest.lineage)
                self._go_on_from(located)
            return
        if self._state is None or self._state.lineage != log.lineage:
            self._enter(log)
        elif version != self._state.version + 1:
            self._missing(self._state.version + 1, version - 1, log.lineage)
        self._add(log)
        if located is not None:
            self._compare(located, log)
            self._go_on_from(located)

    # -- where the history has holes -------------------------------------------------------------------------------

    def _missing(self, first: int, last: int, lineage: str) -> None:
        """No round log of the versions `first` to `last`; nothing is known after them."""
        self._state = _State.unknown(lineage, last)
        if first > last:
            return
        span = f"snapshot {last}" if first == last else f"snapshots {first} to {last}"
        if self.logs.removed(last):
            self.tiling.not_checkable.append(f"{span}: the round log is removed by retention")
        else:
            self.lineage.problems.append(f"{span}: no round log, and retention has not removed it")

    def _begin(self, located: Located) -> None:
        """A lineage's first snapshot, which no log leads to."""
        manifest, before = located.manifest, self._state
        if before is not None:
            self._left.add(before.lineage)
            over = passes_over(manifest)
            if manifest.version != before.version + 1 and not over:
                self._missing(before.version + 1, manifest.version - 1, before.lineage)
        self._check_lineage_is_new(manifest.version, manifest.lineage)
        self._check_run(manifest.version, manifest.run, new=True)
        self.lineage.problems += check_beginning(self.snapshots, located, self.first_offsets)
        if manifest.is_import:
            self.lineage.not_checkable.append(f"{came_from(manifest)}, which is not to be looked at here")
        parent = None if manifest.parent is None else self._manifests.get(manifest.parent.version)
        is_enlarged = parent is None or parent.manifest.schema != manifest.schema
        if manifest.is_continuation and is_enlarged and manifest.version - 1 not in self.snapshots.current:
            text = f"snapshot {manifest.version}: whether it is the one before it with new classes; that one is gone"
            self.lineage.not_checkable.append(text)
        self._state = _State.of(located)
        self._state.next_slot = 0

    def _enter(self, log: RoundLogs) -> None:
        """The first log of a lineage whose first snapshot is gone."""
        before = self._state
        if before is not None:
            self._left.add(before.lineage)
            if log.version == before.version + 1:
                self.lineage.problems.append(f"snapshot {log.version}: its lineage begins without a first snapshot")
            elif log.version > before.version + 2:
                span = f"snapshots {before.version + 1} to {log.version - 2}"
                self.tiling.not_checkable.append(f"{span}: no round log; the manifest that would tell why is gone")
        self._check_lineage_is_new(log.version, log.lineage)
        self._state = _State.unknown(log.lineage, log.version - 1)
        if before is not None or not self.logs.cut:  # then it is the lineage's first log
            self._state.chain, self._state.counts = first_chain(log.lineage), Counts()
            begun = {rows for round_, rows in self._seen if round_ == int(log.rounds["round"][0]) - 1}
            self._state.rows_seen = begun.pop() if len(begun) == 1 else None
            self._state.run = _NONE_YET if before is None else before.run

    def _check_lineage_is_new(self, version: int, lineage: str) -> None:
        self.lineage.expect(lineage not in self._left, f"snapshot {version}: goes back to lineage {lineage}")

    def _check_run(self, version: int, run: Run, new: bool) -> None:
        before = self._state.run if self._state else None
        if before is not None:
            follows = run.number > before.number or (run == before and not new)
            text = f"snapshot {version} is of run {run.number}, the one before it of run {before.number}"
            self.lineage.expect(follows, text)

    # -- one log -----------------------------------------------------------------------------------------------------

    def _add(self, log: RoundLogs) -> None:
        state = self._state
        assert state is not None
        self._check_run(log.version, log.run, new=False)
        if state.run != log.run:
            state.next_slot, state.closed_by, state.worker_deaths = (0 if state.run else None), None, 0
        self._pass_gaps(state, log)
        explained: list[str] = []
        for each in log:
            problems, more = state.frontier.pass_ranges(each, self.first_offsets)
            self.tiling.problems += [*broken(each), *problems]
            explained += more
        if self._next_manifest(log) is None and state.run != log.run:
            self.tiling.not_checkable += [f"{text}; the manifests that would tell a gap are gone" for text in explained]
        else:
            self.tiling.problems += explained
        self._check_round(state, log)
        self._check_terms(state, log)
        state.run, state.version = log.run, log.version
        state.round = int(log.rounds["round"][-1])
        state.rows_seen = None if state.rows_seen is None else state.rows_seen + log.rows_trained
        state.chain = None if state.chain is None else reduce(chain_after, log, state.chain)
        state.counts = None if state.counts is None else reduce(counts_after, log, state.counts)
        if state.rows_seen is not None:
            self._seen.add((state.round, state.rows_seen))
        terms = log.first.terms[-1]
        state.seed, state.frontier.topic_id = state.seed if log.is_folded else terms.seed, terms.topic_id

    def _pass_gaps(self, state: _State, log: RoundLogs) -> None:
        """A start may have accepted gaps: those the next manifest held has more, as far as they begin here."""
        following = self._next_manifest(log)
        if state.run == log.run:
            return
        if following is None:
            was, now = state.frontier.topic_id, log.first.terms[0].topic_id
            if was not in (None, now):
                text = f"snapshot {log.version}: reads on in topic id {now}, the one before in {was}"
                self.tiling.not_checkable.append(f"{text}; the manifests that would tell a gap are gone")
                state.frontier = Frontier(now, {}, whole=False)
            return
        if state.gaps is None:
            for gap in following.gaps:
                state.frontier.pass_gap(gap)
            return
        for gap in following.gaps[len(state.gaps) :]:
            if not state.frontier.pass_gap(gap):
                return
            state.gaps = (*state.gaps, gap)

    def _next_manifest(self, log: RoundLogs) -> Manifest | None:
        """The next one held of the log's lineage: its own, or one after it."""
        versions = [version for version in self._manifests if version >= log.version]
        following = self._manifests[min(versions)].manifest if versions else None
        return following if following is not None and following.lineage == log.lineage else None

    def _check_round(self, state: _State, log: RoundLogs) -> None:
        where, first = f"snapshot {log.version}", int(log.rounds["round"][0])
        if state.round is not None:
            text = f"{where}: expected round {state.round + 1} next, got {first}"
            self.lineage.expect(first == state.round + 1, text)
        if not log.is_folded:
            self._check_slots(state, where, log.first)

    def _check_slots(self, state: _State, where: str, log: RoundLog) -> None:
        """The batches and ends of a run of one host follow each other."""
        rounds, first_slot = log.rounds, int(log.rounds["first_slot"][0])
        if state.next_slot is not None:
            expected = f"expected batch {state.next_slot} of its run next, got {first_slot}"
            self.lineage.expect(first_slot == state.next_slot, f"{where}: {expected}")
        ended = [state.closed_by, *rounds["closed_by"].tolist()]
        over = any(why in _LAST_OF_A_RUN for why in ended[:-1])
        self.lineage.expect(not over, f"{where}: rounds after its run's last")
        text = f"{where}: {log.worker_deaths} deaths of workers, {state.worker_deaths} before"
        self.lineage.expect(log.worker_deaths >= state.worker_deaths, text)
        state.next_slot = int(rounds["first_slot"][-1]) + int(rounds["slots"][-1])
        state.closed_by, state.worker_deaths = ended[-1], log.worker_deaths

    def _check_terms(self, state: _State, log: RoundLogs) -> None:
        """Seed and topic id are the lineage's, and stay within a log. Hosts have seeds of their own."""
        names = {"topic_id": state.frontier.topic_id} | ({} if log.is_folded else {"seed": state.seed})
        for name, known in names.items():
            found = {getattr(terms, name) for each in log for terms in each.terms}
            same = len(found) == 1 and known in (None, *found)
            self.lineage.expect(same, f"snapshot {log.version}: terms with {name} {found}, expected {known}")

    # -- one manifest -------------------------------------------------------------------------------------------------

    def _compare(self, located: Located, log: RoundLogs) -> None:
        """The manifest a log leads to against what was folded."""
        state, manifest = self._state, located.manifest
        assert state is not None
        expected: dict[str, tuple[object, object]] = {
            "lineage": (manifest.lineage, log.lineage),
            "run": (manifest.run, log.run),
            "round": (manifest.round, state.round),
            "rows_seen": (manifest.rows_seen, state.rows_seen),
            "counts": (manifest.counts, state.counts),
            "chain": (manifest.chain, state.chain),
            "gaps": (manifest.gaps, state.gaps),
            "imported": (manifest.imported, state.imported),
            "seed": (manifest.seed, state.seed),
            "metrics": (manifest.metrics, log.metrics),
            "created_ms": (manifest.created_ms, log.created_ms),
            "untrained": (manifest.untrained, False),
            "contributions": (
                [(each.host, each.rows, each.weight) for each in manifest.contributions],
                [(each.host, each.rows_trained, each.weight) for each in log if log.is_folded],
            ),
        }
        for name, (value, folded) in expected.items():
            if folded is not None and value != folded:
                text = f"its manifest says {name} {value!r:.80}, the snapshot before and its round log {folded!r:.80}"
                self.lineage.problems.append(f"snapshot {manifest.version}: {text}")
        first = manifest.restored is None
        self.lineage.expect(first, f"snapshot {manifest.version}: restored, but not the first of a lineage")
        self._check_contributions(state, manifest)
        for text in state.frontier.differences(manifest.positions, self.first_offsets):
            self.tiling.problems.append(f"snapshot {manifest.version}: its positions: {text}")

    def _check_contributions(self, state: _State, manifest: Manifest) -> None:
        """The lives of hosts count their contributions; a run's inbox never goes back."""
        where = f"snapshot {manifest.version}"
        for each in manifest.contributions:
            before = self._sequences.get(each.life, -1)
            text = f"{where}: contribution {each.sequence} of host {each.host} after {before} of the same life"
            self.lineage.expect(each.sequence > before, text)
            self._sequences[each.life] = each.sequence
        if state.run == manifest.run and state.inbox is not None and manifest.inbox is not None:
            text = f"{where}: inbox {manifest.inbox}, before it was {state.inbox}"
            self.lineage.expect(manifest.inbox >= state.inbox, text)

    def _go_on_from(self, located: Located) -> None:
        """From a manifest that is held, so that a problem is told once."""
        self._seen.add((located.manifest.round, located.manifest.rows_seen))
        before, self._state = self._state, _State.of(located)
        if before is not None and before.run == self._state.run:
            self._state.next_slot, self._state.closed_by = before.next_slot, before.closed_by
            self._state.worker_deaths = before.worker_deaths

"""Goes over a lineage's round logs from a snapshot on, each under the terms it tells, and compares what comes out.

Nothing but the start, the round log and the records is read; on the same build all of it is the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from streamtrain.checks.replay.replay_report import Replayed, Report
from streamtrain.checks.replay.replayed_state import LineageState
from streamtrain.checks.replay.reread_records import Readers
from streamtrain.compute.torch import in_process_of_its_own
from streamtrain.errors import CheckFailed, UserMistake
from streamtrain.files.found import FoundFile
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin, TopicState
from streamtrain.kafka.round_logs import round_logs
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.record_sources.given_files import GivenFiles
from streamtrain.record_sources.source_changes import FileEntry, list_files
from streamtrain.record_sources.source_kind import Given, RecordsCompacted, RecordsGone, Topic
from streamtrain.topics.chunks import Stored


def replay(job: Job, from_version: int, to_version: int | None = None, files: Sequence[FoundFile] = ()) -> Report:
    """Computes every snapshot after `from_version` up to `to_version` again that the topics still let one compute.

    `files`: those that were trained in the place of the topic. Raises UserMistake where `from_version` or its round log
    is gone, or for other files; CheckFailed where there is nothing to compare.
    """
    kafka = job.kafka_consumer()
    rounds_topic, records_topic = job.topic("rounds").name, job.topic("records").name
    assert rounds_topic is not None and records_topic is not None
    records = Admin(job.kafka.bootstrap, job.kafka_admin()).describe([records_topic])[records_topic]
    report = Report(job.name, from_version)
    if job.network is not None:
        in_process_of_its_own()
    with (
        SnapshotTopic(job.name, job.kafka.bootstrap, kafka) as topic,
        _readers(topic, records_topic, records, kafka, files) as readers,
    ):
        state = LineageState(topic.version(from_version), readers, job.network)
        begun = {each.manifest.version for each in topic.list() if each.manifest.is_continuation}
        begun = {version for version in begun if to_version is None or version <= to_version}
        report.snapshots += _continued(state, topic, begun)
        for log in round_logs(kafka, rounds_topic):
            in_range = log.version > from_version and (to_version is None or log.version <= to_version)
            if log.lineage != state.lineage or not in_range:
                continue
            if log.version != state.version + 1:
                if not report.snapshots:
                    raise UserMistake(
                        f"{rounds_topic}: no round log leads from snapshot {from_version} on; try a newer --from"
                    )
                report.notes.append(f"stopped before {state.version + 1}: its round log is not in {rounds_topic}")
                break
            try:
                report.snapshots.append(state.follow(log, _find_snapshot(topic, log.version)))
                report.snapshots += _continued(state, topic, begun)
            except RecordsCompacted as gone:
                lacking = f"not replayable: {gone.count(log)} records compacted"
                report.not_replayable = f"{lacking}; stopped before snapshot {log.version}: {gone}"
                break
            except RecordsGone as gone:
                report.notes.append(f"stopped before {log.version}: {gone}")
                break
        report.notes += state.notes
    if not report.not_replayable and not any(found.whole for found in report.snapshots):
        why = "; ".join(report.notes) or f"{rounds_topic} holds no newer round log of its lineage"
        raise CheckFailed(f"{job.name}: no snapshot to compare after {from_version}: {why}")
    return report


def _readers(
    snapshots: SnapshotTopic,
    topic: str,
    records: TopicState | None,
    kafka: Mapping[str, str],
    files: Sequence[FoundFile],
) -> Readers:
    def files_of(identity: str) -> list[FileEntry]:
        """By the newest snapshot held that has read them."""
        of_them = [each.manifest for each in snapshots.list() if each.manifest.positions.topic_id == identity]
        return list_files(of_them[-1].gaps, identity) if of_them else []

    now = Topic(topic, "none", ()) if records is None else Topic(topic, records.topic_id, (), records.compacted)
    return Readers(Given(now, GivenFiles(files) if files else None, files_of, kafka))


def _continued(state: LineageState, topic: SnapshotTopic, begun: Collection[int]) -> Iterator[Replayed]:
    """Passes on to the lineage that goes on from the state's snapshot with more classes, where one has `begun`."""
    while (version := state.version + 1) in begun and (stored := _find_snapshot(topic, version)) is not None:
        yield state.continue_as(stored)


def _find_snapshot(topic: SnapshotTopic, version: int) -> Stored | None:
    try:
        return topic.version(version)
    except UserMistake:
        return None  # compacted away

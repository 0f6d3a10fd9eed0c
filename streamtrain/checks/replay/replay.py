"""Goes over a lineage's round logs from a snapshot on, each under the terms it tells, and compares what comes out.

Nothing but the start, the round log and the records is read; on the same build all of it is the same bit for bit.
"""

from __future__ import annotations

from streamtrain.checks.replay.lineage import LineageState
from streamtrain.checks.replay.records import RecordReader, RecordsGone
from streamtrain.checks.replay.report import Report
from streamtrain.errors import CheckFailed, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.chunks import Stored
from streamtrain.kafka.round_logs import round_logs
from streamtrain.kafka.snapshots import SnapshotTopic


def replay(job: Job, from_version: int, to_version: int | None = None) -> Report:
    """Computes every snapshot after `from_version` up to `to_version` again that the topics still let one compute.

    Raises UserMistake where `from_version` or its round log is gone, CheckFailed where there is nothing to compare.
    """
    kafka = job.kafka_consumer()
    rounds_topic, records_topic = job.topic("rounds").name, job.topic("records").name
    assert rounds_topic is not None and records_topic is not None
    topic_id = Admin(job.kafka.bootstrap, job.kafka_admin()).topic_ids([records_topic])[records_topic]
    report = Report(job.name, from_version)
    with (
        SnapshotTopic(job.name, job.kafka.bootstrap, kafka) as topic,
        RecordReader(records_topic, topic_id or "none", kafka) as reader,
    ):
        state = LineageState(topic.version(from_version), reader)
        for log in round_logs(kafka, rounds_topic):
            wanted = log.version > from_version and (to_version is None or log.version <= to_version)
            if log.lineage != state.lineage or not wanted:
                continue
            if log.version != state.version + 1:
                if not report.snapshots:
                    raise UserMistake(
                        f"{rounds_topic}: no round log leads from snapshot {from_version} on; try a newer --from"
                    )
                report.notes.append(f"stopped before {state.version + 1}: its round log is not in {rounds_topic}")
                break
            try:
                report.snapshots.append(state.follow(log, _held(topic, log.version)))
            except RecordsGone as gone:
                report.notes.append(f"stopped before {log.version}: {gone}")
                break
        report.notes += state.notes
    if not any(found.whole for found in report.snapshots):
        why = "; ".join(report.notes) or f"{rounds_topic} holds no newer round log of its lineage"
        raise CheckFailed(f"{job.name}: no snapshot to compare after {from_version}: {why}")
    return report


def _held(topic: SnapshotTopic, version: int) -> Stored | None:
    try:
        return topic.version(version)
    except UserMistake:
        return None  # compacted away

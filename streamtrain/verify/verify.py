"""Runs every check over what the topics of a job still hold."""

from __future__ import annotations

from streamtrain.errors import CheckFailed, SnapshotError
from streamtrain.job import Job
from streamtrain.kafka.chunks import Located
from streamtrain.kafka.reading import read_round_logs
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.topics.rounds import RoundLog
from streamtrain.verify.dead_letters import check_dead_letters
from streamtrain.verify.predictions import check_predictions
from streamtrain.verify.records import check_records
from streamtrain.verify.report import Check, Report
from streamtrain.verify.rounds import check_conservation, check_positions, check_rounds, check_tiling
from streamtrain.verify.snapshots import check_lineage, check_whole


def verify(job: Job) -> Report:
    """Checks guarantees 1 to 5 on the job's topics; needs no access to the running processes.

    Raises KafkaUnreachable when no broker answers and CheckFailed where there is nothing to look at.
    """
    kafka = job.kafka_consumer()
    report = Report(job.name)
    rounds_topic = job.topic("rounds").name
    assert rounds_topic is not None
    with SnapshotTopic(job.name, kafka["bootstrap.servers"], kafka) as topic:
        # before the snapshots: each log then has its snapshot or a newer one
        logs = read_round_logs(kafka, rounds_topic)
        try:
            manifests = topic.list()
        except SnapshotError as error:
            report.checks.append(Check("snapshots", "a reader sees whole snapshots only", problems=[str(error)]))
            return report
        if not manifests:
            raise CheckFailed(f"{topic.name}: no snapshot yet; start 'streamtrain train' first")
        report.checks.append(check_whole(topic, manifests))
    newest = manifests[-1]
    logs = [log for log in logs if log.version <= newest.manifest.version]
    _count(report, logs, newest)
    report.checks += [
        check_lineage(manifests, logs),
        check_rounds(logs),
        check_tiling(logs, manifests),
        check_positions(logs, manifests),
        check_conservation(logs, manifests),
        check_records(job, logs),
        check_dead_letters(job, logs),
        check_predictions(job, manifests, logs),
    ]
    return report


def _count(report: Report, logs: list[RoundLog], newest: Located) -> None:
    for log in logs:
        if log.lineage == newest.manifest.lineage:
            report.rows_trained += int(log.slots["trained"].sum(dtype="i8"))
            report.rows_dead += int(log.slots["dead"].sum(dtype="i8"))
            report.rows_filtered += int(log.slots["filtered"].sum(dtype="i8"))
    versions = [log.version for log in logs]
    report.versions = (min(versions), max(versions)) if versions else None

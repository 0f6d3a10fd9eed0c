"""Runs every check over what the topics of a job still hold. `check_topics` needs no Kafka."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain.checks.verify.dead_letter_check import check_dead_letters
from streamtrain.checks.verify.decoding import Decoders
from streamtrain.checks.verify.early_stopping_check import check_early_stopping
from streamtrain.checks.verify.fold import Fold
from streamtrain.checks.verify.gathering import OnRead, read_topics
from streamtrain.checks.verify.logs import Logs, read_logs
from streamtrain.checks.verify.manifests import check_manifests
from streamtrain.checks.verify.prediction_check import check_predictions
from streamtrain.checks.verify.record_check import check_records
from streamtrain.checks.verify.runs import check_runs, read_control
from streamtrain.checks.verify.snapshot_check import Snapshots, read_snapshots
from streamtrain.checks.verify.sources import Sources, check_sources
from streamtrain.checks.verify.terms import check_terms
from streamtrain.checks.verify.topics import ReadTopics
from streamtrain.checks.verify.verify_report import Report
from streamtrain.errors import CheckFailed
from streamtrain.files.found import FoundFile
from streamtrain.job import Job
from streamtrain.record_sources.given_files import GivenFiles


def verify(job: Job, fast: bool = False, files: Sequence[FoundFile] = (), on_read: OnRead | None = None) -> Report:
    """Checks guarantees 1 to 5 on the job's topics; needs no access to the running processes.

    With `fast` whole records are not read again; `files` are those that were trained in the place of the topic;
    `on_read` hears of messages as they are read, and ends it by raising. Raises KafkaUnreachable when no broker
    answers, UserMistake for other files, and CheckFailed where there is nothing to look at.
    """
    given = GivenFiles(files) if files else None
    with read_topics(job, given) if on_read is None else read_topics(job, given, on_read) as topics:
        return check_topics(topics, fast)


def check_topics(topics: ReadTopics, fast: bool = False) -> Report:
    """Checks a job's guarantees on the messages of its topics. Wrong bytes are a finding, not an exception.

    Raises CheckFailed where there is no snapshot.
    """
    report = Report(topics.job)
    if topics.snapshots is None:
        raise CheckFailed(f"{topics.job}: no snapshots topic; start 'streamtrain train' first")
    whole, snapshots = read_snapshots(topics.job, topics.snapshots)
    report.checks.append(whole)
    if not snapshots.manifests:
        if whole.ok:
            raise CheckFailed(f"{topics.snapshots.name}: no snapshot yet; start 'streamtrain train' first")
        return report
    newest = snapshots.newest.manifest.version
    log_check, logs = read_logs(topics.job, topics.rounds, newest)
    runs, control, newest_before = read_control(topics.job, topics.control, topics.control_end)
    check_runs(runs, snapshots, logs, control, newest_before)
    firsts = None if topics.records is None else [partition.low for partition in topics.records.partitions]

    def first_offsets(topic_id: str) -> Sequence[int] | None:
        return firsts if topics.records is not None and topics.records.topic_id == topic_id else None

    decoders = Decoders(snapshots)
    sources = Sources(topics.records, topics.files, snapshots)
    early_stopping = check_early_stopping(snapshots, logs)
    letters, waiting = check_dead_letters(topics, logs, newest, decoders, sources)
    report.checks += [
        log_check,
        check_manifests(topics.job, snapshots, logs, control),
        *Fold(snapshots, logs, first_offsets).run(),
        *check_sources(snapshots, topics.files),
        check_terms(snapshots, logs),
        *([] if early_stopping is None else [early_stopping]),
        runs,
        letters,
        check_records(sources, logs, decoders, waiting, fast),
        check_predictions(topics, snapshots, logs, fast),
    ]
    _count(report, snapshots, logs)
    return report


def _count(report: Report, snapshots: Snapshots, logs: Logs) -> None:
    for log in logs.all:
        if log.lineage == snapshots.newest.manifest.lineage:
            report.rows_trained += int(log.slots["trained"].sum(dtype="i8"))
            report.rows_dead += int(log.slots["dead"].sum(dtype="i8"))
            report.rows_filtered += int(log.slots["filtered"].sum(dtype="i8"))
    versions = [log.version for log in logs.all]
    report.versions = (min(versions), max(versions)) if versions else None

"""The record source that a command's flags name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamtrain.files.found import FoundFile
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.record_sources.file_source import FileRecordSource
from streamtrain.record_sources.record_source import RecordSource
from streamtrain.record_sources.topic_source import TopicRecordSource


def record_source_of(
    job: Job, consumer: Mapping[str, str], admin: Admin, files: Sequence[FoundFile] | None
) -> RecordSource:
    """These files, or the records topic where there are none. `consumer`: Job.kafka_consumer() of the whole job."""
    return FileRecordSource(job, files) if files else TopicRecordSource(job, consumer, admin)

"""Which origin a command's flags name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamtrain.files.found import FoundFile
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.origins.files import FilesOrigin
from streamtrain.origins.origin import Origin
from streamtrain.origins.topic import TopicOrigin


def origin_of(job: Job, consumer: Mapping[str, str], admin: Admin, files: Sequence[FoundFile] | None) -> Origin:
    """These files, or the records topic where there are none. `consumer`: Job.kafka_consumer() of the whole job."""
    return FilesOrigin(job, files) if files else TopicOrigin(job, consumer, admin)

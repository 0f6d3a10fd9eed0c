"""The topics of a job: a file that has a TOPIC is one, with all that its messages are."""

from __future__ import annotations

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "topic", word="TOPIC", dashed=True)

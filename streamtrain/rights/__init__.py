"""The registry of roles, by what each may do on a Kafka that asks who one is: a file is one. It has HELP and
rights(job, topics) -> the rights it needs, where `topics` are the names of a job's topics by key.
"""

from __future__ import annotations

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "role")

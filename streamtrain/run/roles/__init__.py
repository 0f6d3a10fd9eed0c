"""The processes of a running job. Each file that has a HELP is one, with Config and run(config)."""

from __future__ import annotations

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "process")

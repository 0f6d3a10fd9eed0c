"""Each file of this folder that has an ORDER is one command, or one group of commands."""

from __future__ import annotations

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "command", word="ORDER", dashed=True)

"""Kinds of record sources, and how runs read them. Each file that has a SOURCE is a kind, by its stem."""

from __future__ import annotations

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "record source", word="SOURCE")

"""An optimizer's settings between the job file and the engine, whose files name and default them."""

from __future__ import annotations

from typing import Any

from streamtrain.compute import optimizers


def optimizer_settings(name: str) -> dict[str, float]:
    """Settings of the optimizer `name` beside its learning rate, with their defaults. `sgd` takes a momentum."""
    found = dict(optimizers.get(name).DEFAULTS)
    return {**found, "momentum": 0.0} if name == "sgd" else found


def optimizer_spec(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What the engine takes, without the learning rate; sgd with a momentum is an optimizer of its own there."""
    settings = {**optimizer_settings(name), **given}
    if name == "sgd":
        momentum = settings.pop("momentum")
        return {"name": "momentum", "momentum": float(momentum)} if momentum else {"name": name}
    return {"name": name, **{key: float(value) for key, value in settings.items()}}

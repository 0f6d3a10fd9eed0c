"""An optimizer's settings between the job file and the engine, whose files name and default them."""

from __future__ import annotations

import math
from typing import Any

from streamtrain.compute import optimizers


def optimizer_settings(name: str) -> dict[str, float]:
    """Settings of the optimizer `name` beside its learning rate, with their defaults. `sgd` takes a momentum."""
    found = dict(optimizers.get(name).DEFAULTS)
    return {**found, "momentum": 0.0} if name == "sgd" else found


def optimizer_takes(setting: str) -> str:
    """What one of these settings takes, in words."""
    return "a number from 0 below 1" if setting.startswith("beta") else "a number from 0"


def optimizer_accepts(setting: str, value: object) -> bool:
    """Whether it takes this value."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value < (1 if setting.startswith("beta") else math.inf)


def optimizer_spec(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What the engine takes, without the learning rate; sgd with a momentum is an optimizer of its own there."""
    settings = {**optimizer_settings(name), **given}
    if name == "sgd":
        momentum = settings.pop("momentum")
        return {"name": "momentum", "momentum": float(momentum)} if momentum else {"name": name}
    return {"name": name, **{key: float(value) for key, value in settings.items()}}

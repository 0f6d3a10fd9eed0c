"""The [kafka] section: any librdkafka property, flattened, for both sides or one; those streamtrain sets are refused.

Values are never shown: they may be secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from streamtrain import _native
from streamtrain.job.librdkafka import accepts, properties
from streamtrain.job.lines import Path
from streamtrain.job.mistakes import Mistake, show_path
from streamtrain.job.setting_sources import Gathered
from streamtrain.registry import nearest

SIDES = ("consumer", "producer")
OWNED: dict[str, str] = {}  # properties that no file may hold, with the first reason
for _setting in _native.kafka_settings():
    if _setting[2] == "owned":
        OWNED.setdefault(_setting[0], _setting[4])
_ALIASES = {"metadata.broker.list": "bootstrap.servers"}


@dataclass(frozen=True)
class KafkaSettings:
    """librdkafka properties: for both sides, and for one."""

    common: dict[str, str] = field(default_factory=dict)
    consumer: dict[str, str] = field(default_factory=dict)
    producer: dict[str, str] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """The addresses to start from, "" where none were given."""
        return self.common.get("bootstrap.servers", "")

    def __repr__(self) -> str:
        names = sorted({*self.common, *self.consumer, *self.producer} - {"bootstrap.servers"})
        return f"KafkaSettings(bootstrap={self.bootstrap!r}, values of {names} not shown)"


def flatten(table: dict[str, Any], name: str, path: Path) -> Iterator[tuple[str, Any, Path]]:
    """(property, value, where it stands) of a table whose names may hold dots or be tables."""
    for key, value in table.items():
        inner = f"{name}.{key}" if name else key
        if isinstance(value, dict):
            yield from flatten(value, inner, (*path, key))
        else:
            yield inner, value, (*path, key)


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def kafka_settings(gathered: Gathered) -> KafkaSettings:
    """The properties of all sources, the strongest last; mistakes are added to `gathered`."""
    settings = KafkaSettings()
    for table, path in gathered.apart["kafka"]:
        if not isinstance(table, dict):
            gathered.mistakes.append(
                Mistake(gathered.where(path), "kafka", "a table of librdkafka properties", "a value")
            )
            continue
        for name, value, value_path in flatten(table, "", path):
            side, _, rest = name.partition(".")
            target = settings.common
            if side in SIDES and rest:
                name, target = rest, getattr(settings, side)
            _put(gathered, target, _ALIASES.get(name, name), value, value_path)
    return settings


def _put(gathered: Gathered, target: dict[str, str], name: str, value: Any, path: Path) -> None:
    mistake = _mistake(gathered.where(path), _format_path(name, path), name, value)
    if mistake is not None:
        gathered.mistakes.append(mistake)
    else:
        target[name] = str(_as_text(value))


def _format_path(name: str, path: Path) -> str:
    return f"kafka.{name}" if str(path[1]).startswith("#") else show_path(path)


def _mistake(where: str, setting: str, name: str, value: Any) -> Mistake | None:
    known, text = properties(), _as_text(value)
    if name in OWNED:
        return Mistake(where, setting, f"set by streamtrain, remove it: {OWNED[name]}")
    if known and name not in known:
        return Mistake(where, setting, "unknown librdkafka property", nearest=nearest(name, known))
    if known and not known[name].settable:
        return Mistake(where, setting, "a librdkafka property no file can hold, remove it")
    if text is None:
        return Mistake(where, setting, "a text, a number, true or false", f"{type(value).__name__} (not shown)")
    if known and not accepts(name, text):
        return Mistake(where, setting, known[name].takes, "another value (not shown)")
    return None


def for_side(settings: dict[str, str], side: str) -> dict[str, str]:
    """The settings without those of the other side, which librdkafka would warn of; `side` is "C" or "P"."""
    known = properties()
    return {name: value for name, value in settings.items() if name not in known or known[name].side in ("*", side)}

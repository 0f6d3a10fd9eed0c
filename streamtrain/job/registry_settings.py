"""The [registry] section: where the schemas that records name are asked for, flattened.

Any property of confluent_kafka.schema_registry, which checks them. Values are never shown: they may be secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from streamtrain.job.kafka_settings import flatten
from streamtrain.job.lines import Path
from streamtrain.job.mistakes import Mistake
from streamtrain.job.setting_sources import Gathered

Value = str | int | float | bool


@dataclass(frozen=True)
class RegistrySettings:
    """Properties of the registry's client; none where a job has no registry."""

    properties: Mapping[str, Value] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.properties)

    @property
    def address(self) -> str:
        """Returns the URL as it may be shown: without a user's name and password."""
        parts = urlsplit(str(self.properties.get("url", "")))
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __repr__(self) -> str:
        return f"RegistrySettings({self.address!r}, values of {sorted(self.properties)} not shown)"


def registry_settings(gathered: Gathered) -> RegistrySettings:
    """The properties of all sources, the strongest last; mistakes are added to `gathered`."""
    found: dict[str, Value] = {}
    places: dict[str, Path] = {}
    for table, path in gathered.apart["registry"]:
        if not isinstance(table, dict):
            mistake = Mistake(gathered.where(path), "registry", "a table of the registry's properties", "a value")
            gathered.mistakes.append(mistake)
            continue
        for name, value, value_path in flatten(table, "", path):
            if isinstance(value, Value):
                found[name], places[name] = value, value_path
                continue
            what = f"{type(value).__name__} (not shown)"
            gathered.mistakes.append(
                Mistake(gathered.where(value_path), f"registry.{name}", "a text, a number, true or false", what)
            )
    url = found.get("url")
    if found and (not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https")):
        where = gathered.where(places["url"]) if "url" in places else gathered.where(("registry",))
        got = "another value (not shown)" if "url" in found else None
        gathered.mistakes.append(Mistake(where, "registry.url", 'a URL such as "http://registry:8081"', got))
    return RegistrySettings(found)

"""[registry]: any property of the registry's client, from file, environment and flags; never shown, never published."""

from __future__ import annotations

import json
from typing import Any

import pytest
from looped import over

from streamtrain.job import Job, JobMistakes, settings_table

ROW = {"type": "record", "name": "Row", "fields": [{"name": "x", "type": "float"}, {"name": "y", "type": "int"}]}
TEXT = f"""
name = "flights"
[kafka]
bootstrap.servers = "localhost:9092"
[records]
format = "avro"
schema = '{json.dumps(ROW)}'
[columns]
x = {{}}
y = {{ role = "label" }}
"""


def job(registry: str = "", **given: Any) -> Job:
    return Job.parse(TEXT + registry, name="flights.toml", **given)


def test_properties_are_flattened_and_kept_apart() -> None:
    made = job('[registry]\nurl = "http://me:secret@registry:8081/v7"\nbasic.auth.user.info = "a:hidden"\ntimeout = 5')
    assert made.registry.properties == {
        "url": "http://me:secret@registry:8081/v7", "basic.auth.user.info": "a:hidden", "timeout": 5,
    }  # fmt: skip
    told = json.dumps(made.effective()) + repr(made) + str(made.registry)
    assert "secret" not in told and "hidden" not in told
    assert made.registry.address == "http://registry:8081/v7"
    assert "registry" not in made.effective() and not Job.from_effective(made.effective()).registry
    assert any(each.path == "registry.<property>" for each in settings_table())


def test_with_a_registry_records_have_its_frame_unless_they_say_otherwise() -> None:
    url = '[registry]\nurl = "http://r"'
    assert job().records.named["frame"] == "none" and job(url).records.named["frame"] == "registry"
    assert Job.from_effective(job(url).effective()).records.named["frame"] == "registry"
    bare = Job.parse(TEXT.replace("[columns]", 'frame = "none"\n[columns]') + url)
    assert bare.records.named["frame"] == "none"


def test_a_frame_without_a_registry_is_a_mistake() -> None:
    """Its records would be waited for, for ever; a manifest's job has no registry of its own."""
    with pytest.raises(JobMistakes) as caught:
        Job.parse(TEXT.replace("[columns]", 'frame = "registry"\n[columns]'), name="flights.toml")
    (mistake,) = caught.value.mistakes
    assert str(mistake) == (
        'flights.toml:8: records.frame: expected a [registry] with a url, where its ids are known, or frame = "none", '
        'got "registry"'
    )


def test_environment_and_flags_are_stronger() -> None:
    url = '[registry]\nurl = "http://file"'
    found = job(url, environment={"STREAMTRAIN_REGISTRY__URL": "http://env"})
    assert found.registry.properties["url"] == "http://env"
    found = job(
        url, environment={"STREAMTRAIN_REGISTRY__BASIC_AUTH_USER_INFO": "a:b"}, sets=["registry.url=http://flag"]
    )
    assert found.registry.properties == {"url": "http://flag", "basic.auth.user.info": "a:b"}


@over(
    ("registry", "message"),
    [
        ('[registry]\nurl = "registry:8081"', 'url: expected a URL such as "http://registry:8081", got another value'),
        ("[registry]\ntimeout = 1", 'registry.url: a URL such as "http://registry:8081"'),
        ('[registry]\nurl = ["http://secret"]', "registry.url: expected a text, a number, true or false, got list"),
        ("registry = 5", "registry"),
    ],
)
def test_mistakes_show_no_value(registry: str, message: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        Job.parse(registry + TEXT if registry.startswith("registry") else TEXT + registry, name="flights.toml")
    assert message in str(caught.value) and "secret" not in str(caught.value), caught.value

"""What kustomize makes of a folder of ours: the few fields that ours have, anything else is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
KNOWN = {"apiVersion", "kind", "namespace", "resources", "components", "configMapGenerator", "images", "patches"}


def built(folder: Path) -> list[Object]:
    """The objects, the names of generated ones without the digest that kustomize puts behind them."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert set(kustomization) <= KNOWN, set(kustomization) - KNOWN
    objects: list[Object] = []
    for name in [*kustomization.get("resources", []), *kustomization.get("components", [])]:
        path = folder / name
        objects += built(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    for asked in kustomization.get("configMapGenerator", []):
        _generate(objects, folder, asked)
    for image in kustomization.get("images", []):
        _rename(objects, image)
    for patch in kustomization.get("patches", []):
        _replace(objects, patch)
    for each in objects:
        if "namespace" in kustomization:
            each["metadata"]["namespace"] = kustomization["namespace"]
    return objects


def _generate(objects: list[Object], folder: Path, asked: Object) -> None:
    data = dict(literal.split("=", 1) for literal in asked.get("literals", []))
    data |= {Path(file).name: (folder / file).read_text() for file in asked.get("files", [])}
    there = [each for each in objects if each["kind"] == "ConfigMap" and each["metadata"]["name"] == asked["name"]]
    assert len(there) == (asked.get("behavior", "create") != "create")
    if there:
        there[0]["data"] = data if asked["behavior"] == "replace" else {**there[0]["data"], **data}
    else:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": asked["name"]}, "data": data}
        objects.append(made)


def _rename(objects: list[Object], image: Object) -> None:
    found = [each for each in containers(objects) if each["image"].partition(":")[0] == image["name"]]
    assert found, image
    for each in found:
        name, _, tag = each["image"].partition(":")
        each["image"] = f"{image.get('newName', name)}:{image.get('newTag', tag)}"


def _replace(objects: list[Object], patch: Object) -> None:
    """By JSON Patch, RFC 6902, of which ours ask for `replace` alone."""
    assert set(patch["target"]) == {"kind"}
    for each in (each for each in objects if each["kind"] == patch["target"]["kind"]):
        for change in yaml.safe_load(patch["patch"]):
            *way, last = [int(part) if part.isdigit() else part for part in change["path"].split("/")[1:]]
            inner: Any = each
            for part in way:
                inner = inner[part]
            assert change["op"] == "replace" and last in inner
            inner[last] = change["value"]


def pods(objects: list[Object]) -> dict[str, Object]:
    """The pods' templates, by the name of what has them."""
    return {
        each["metadata"]["name"]: each["spec"]["template"] for each in objects if "template" in each.get("spec", {})
    }


def of_pod(pod: Object) -> list[Object]:
    """Its containers, those that run first among them."""
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def containers(objects: list[Object]) -> list[Object]:
    """Of all pods."""
    return [each for pod in pods(objects).values() for each in of_pod(pod)]

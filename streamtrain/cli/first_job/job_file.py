"""The text of a job file for a sample's columns: network, optimizer and rates, with reasons."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from streamtrain.cli.first_job.columns import FEW_CATEGORIES
from streamtrain.cli.first_job.sample import DELETES, Decision, Sample, toml_key
from streamtrain.columns.formats import format_names
from streamtrain.job.registry_settings import RegistrySettings

MANY_CLASSES = 16  # from which on a larger network learns more: of 30 and 100 by a sixth and a tenth in 3,000 rows
SPARSE_RATE = "2e-2"  # beside a network
PAIRS_RATE, PAIRS_RATE_OF_A_NUMBER = "0.5", "0.2"  # alone
PICTURE_RATE = "3e-4"
WIDE_INPUT = 256  # columns of the input matrix from which on steps are smaller
MANY_VALUES_RATE = "1e-3"


@dataclass(frozen=True)
class Machine:
    """The machine that trains: `devices` GPUs that answer, 0 for the CPU."""

    devices: int = 0

    def workers(self) -> tuple[int, str]:
        """Returns how many workers to use, and why."""
        if self.devices:
            return self.devices, "a device each"
        return 1, "learns most from the same rows; with W, learning_rate x W"


class Columns:
    """All decisions of a job, and sums over them."""

    def __init__(self, decisions: Sequence[Decision], sample: Sample) -> None:
        self.decisions = decisions
        self._paths, self._operation = sample.paths, sample.operation
        self.width = sum(each.width for each in decisions)
        self.points = sum(each.points for each in decisions)
        self.sparse = any(each.sparse for each in decisions)
        self.classes = max(each.classes for each in decisions)
        self.values = max(each.values for each in decisions)
        self.losses = {each.name: each.loss for each in decisions if each.loss}

    def lines(self) -> list[str]:
        """The lines of [columns]; what is left out and other choices are comments."""
        return [line for each in self.decisions for line in self._lines(each)]

    def _lines(self, each: Decision) -> list[str]:
        key = toml_key(each.name)
        path = f"path = {json.dumps(self._paths[each.name], ensure_ascii=False)}, " if each.name in self._paths else ""
        why = f"   # {each.reason}" if each.reason else ""
        first = f"{key} = {{ {path}{each.settings} }}{why}" if each.settings else f"# {key}: {each.reason}; left out"
        if not each.other:
            return [first]
        other = each.other.replace("{ ", f"{{ {path}", 1)
        return [first, f"# or {key} = {other}" if other.startswith("{") else f"# or {other}"]

    def where(self) -> str:
        """The line of [records] that leaves out deletes of change events."""
        if not self._operation:
            return ""
        deletes = " and ".join(f"{self._operation} != '{each}'" for each in DELETES)
        return f"where = \"{deletes}\"   # to leave out updates too: \"{self._operation} in ('c', 'r')\"\n"

    def transforms(self) -> str:
        lines = [line for each in self.decisions for line in each.transforms]
        return "\n".join(["\n[transforms]", *lines, ""]) if lines else ""


def _minimised(found: Columns) -> str:
    """The loss, or the heads, behind the layers."""
    if len(found.losses) == 1:
        (loss,) = found.losses.values()
        return f'loss = "{loss}"\n'
    heads = [
        f'\n[model.heads.{toml_key(label)}]\nloss = "{loss}"\nweight = 1.0\n' for label, loss in found.losses.items()
    ]
    return "".join(["# a head for each label; the network learns from the sum of their losses times weight\n", *heads])


def _network(found: Columns) -> tuple[tuple[int, int], str]:
    """The units of two layers, and why.

    Neither the input's width nor the sample's rows choose: on 17 streams of 1 to 400 input columns, cut at 500, 3,000
    and 20,000 rows, 64 and 32 were the best of five sizes or mostly within a few percent of it (tests.bench learning
    --set model.layers=…), but not where the classes are many.
    """
    if found.classes >= MANY_CLASSES:
        return (128, 64), f"Two larger layers: {found.classes} classes have to be told apart"
    return (64, 32), "Two small layers: with one column as with 400, larger ones seldom learned more"


def _layers(found: Columns) -> tuple[str, str]:
    """The model's, and why."""
    if not found.width + found.points:
        return "[]", "Pairs alone are a linear model"
    (first, second), why = _network(found)
    return f'[ {{ dense = {first}, activation = "relu" }}, {{ dense = {second}, activation = "relu" }} ]', why


def _optimizer(found: Columns) -> tuple[str, str, str]:
    """The optimizer with its own settings, its learning rate, and why.

    A linear model of pairs: with AdaGrad at 0.5, log loss in one pass over Reuters, Adult and flights as text of VW was
    0.369, 0.327 and 0.270; with Adam at 2e-2, the best of its rates, 0.497, 0.333 and 0.268. A squared error over
    Reuters, its labels -1 and 1, was 0.675 at 0.5, 0.500 at 0.2 (Adam 0.553).

    Many values: Adam's momentum is stale when a rare value comes again. RMSProp moves what it meets first by
    1 / sqrt(1 - alpha) times the rate, as AdaGrad at 0.03 does; its steps shrink to the rate and not below, so it
    follows a stream that changes. Adam and RMSProp: RMSE of 20,000 ratings of 3,000 films 0.695, 0.651 (Vowpal Wabbit
    0.647), of 60,000 0.579, 0.548 (0.563); log loss of nsl_kdd 0.0301, 0.0259. Without such a category Adam stays: of
    heavy tails alone RMSProp loses 2 % more.
    """
    if found.sparse and not found.width + found.points:
        rate = PAIRS_RATE_OF_A_NUMBER if {*found.losses.values()} == {"mean_squared_error"} else PAIRS_RATE
        return 'name = "adagrad"', rate, "an index takes smaller steps the more it was seen; many are rare"
    if _has_tables(found) and found.values > FEW_CATEGORIES:
        why = f"{found.values:,} values, each seen seldom: a momentum would be stale"
        name = f'name = "rmsprop"                       # {why}'
        alpha = "alpha = 0.999                          # steps begin at 32 x learning_rate and shrink to it"
        return f"{name}\n{alpha}", MANY_VALUES_RATE, "small beside the first steps"
    return 'name = "adam"', *_rate(found)


def _rate(found: Columns) -> tuple[str, str]:
    """Adam's learning rate, and why."""
    if found.sparse:
        return SPARSE_RATE, "large: of the pairs' weights few are touched at a time"
    if found.points:
        return PICTURE_RATE, f"small: {found.points} numbers of pictures move together"
    if found.width > WIDE_INPUT:
        return "1e-3", f"small: the input is {found.width} wide"
    return "2e-3", "suits small batches"


def _groups(found: Columns) -> str:
    """A larger rate for tables of categories.

    Log loss of flights, nsl_kdd, adult and mushroom with a factor of 1, 2 and 4: 0.261, 0.260, 0.258; 0.0311, 0.0297,
    0.0293; 0.3282, 0.3278, 0.3287; 0.0266, 0.0214, 0.0201; RMSE of 20,000 ratings of 3,000 films 0.714, 0.698, 0.692.
    """
    rate = "groups.embedding.rate_factor = 4       # a value of a category is seen seldom\n"
    return rate if _has_tables(found) else ""


def _has_tables(found: Columns) -> bool:
    """Returns whether the network reads tables of categories and otherwise only numbers."""
    if found.sparse or found.points or found.width > WIDE_INPUT:
        return False
    return any('kind = "category"' in each.settings for each in found.decisions)


def _registry(registry: RegistrySettings | None) -> str:
    """The section of a registry, without what may be a secret."""
    if not registry:
        return ""
    others = ", ".join(sorted(registry.properties.keys() - {"url"}))
    left_out = f"# not written here: {others}; STREAMTRAIN_REGISTRY__<NAME> or --set gives them\n" if others else ""
    return f"\n[registry]\nurl = {json.dumps(registry.address)}\n{left_out}"


def job_text(
    job: str, rows: int, found: Columns, bootstrap: str, machine: Machine | None = None, records: str = "json",
    topic: str = "", partitions: int = 0, registry: RegistrySettings | None = None,
) -> str:  # fmt: skip
    """Returns a commented job file for the columns found in `rows` rows of records of the format `records`.

    topic: the records topic, with so many partitions, where it is there already. registry: that knows their schemas.
    """
    found_in = f"As found in {rows} rows of the sample" if rows else "As guessed by the schema alone, without a row"
    topics = f"\n[topics]\nrecords = {{ name = {json.dumps(topic)}, partitions = {partitions} }}\n" if topic else ""
    columns = "\n".join(found.lines())
    job_name = re.sub(r"[^A-Za-z0-9._-]", "-", job) or "job"
    (optimizer, rate, why_rate), (layers, why_size) = _optimizer(found), _layers(found)
    workers, why_workers = (machine or Machine()).workers()
    if workers > 1:
        rate, why_rate = f"{float(rate) * workers:g}", f"{why_rate}; times {workers}, as workers are averaged"
    return f"""name = {json.dumps(job_name)}

[kafka]                                # any librdkafka property
bootstrap.servers = {json.dumps(bootstrap)}
{_registry(registry)}
[records]
format = {json.dumps(records):<30}# {" | ".join(format_names())}
start = "earliest"                     # holds for the first start only
{found.where()}{topics}
# {found_in}. missing: "dead_letter" (default), "skip", "mean" of a number, or a value.
[columns]
{columns}
{found.transforms()}
# The input matrix has {found.width + found.points} columns. {why_size}; [] is the linear model.
[model]
layers = {layers}
{_minimised(found)}
[optimizer]
{optimizer}
learning_rate = {rate:<23}# {why_rate}
{_groups(found)}
[train]
batch_rows = 256                       # once full-grown
batch_growth = 4000                    # a row more for so many seen: a short stream needs many updates
workers = {workers:<29}# {why_workers}
round_interval = "250ms"               # or "off"

[publish]
interval = "1s"
keep = 8                               # newest snapshots kept in the topic
"""

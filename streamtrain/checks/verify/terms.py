"""The terms in a round log against the manifest of its run: what a replay would use is what the job was set to. Hosts
that contribute may differ from the one that publishes, but not in what they learn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from streamtrain.checks.verify.logs import Logs
from streamtrain.checks.verify.snapshot_check import Snapshots
from streamtrain.checks.verify.verify_report import Check
from streamtrain.columns import formats
from streamtrain.errors import UserMistake
from streamtrain.topics.manifest import Manifest, Run
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.terms import Terms, columns_digest, contribution_seed, model_digest

# what a host may have otherwise than the one that publishes; its seed is its own
_OF_A_HOST = {"learning_rate", "averaging_frequency", "workers", "slot", "batch_growth", "build", "seed"}


def check_terms(snapshots: Snapshots, logs: Logs) -> Check:
    """Checks that the round settings of a run agree with each other and with the manifests of that run."""
    check = Check("terms", "the terms of each round are the settings of its run")
    by_run: dict[Run, dict[str, Any]] = {}
    for located in snapshots.manifests:
        mine = expected_terms(located.manifest)
        run = by_run.setdefault(located.manifest.run, mine)
        different = [name for name, value in mine.items() if value != run[name]]
        check.expect(not different, f"snapshot {located.manifest.version}: other {different} than its run began with")
    before: dict[Run, Terms] = {}
    seeds = {located.manifest.lineage: located.manifest.seed for located in snapshots.manifests}
    for publication in logs.publications:
        for log in publication:
            for terms in log.terms:
                expected = {**_fields(before.get(log.run, terms)), **by_run.get(log.run, {})}
                for name in _fields(terms).keys() - (_OF_A_HOST if log.host else set()):
                    value = getattr(terms, name)
                    text = f"snapshot {log.version} round {terms.first_round}: {name} is {value!r:.60}"
                    check.expect(value == expected[name], f"{text}, its run has {expected[name]!r:.60}")
                before[log.run] = terms
        if publication.is_folded and publication.lineage in seeds:
            check.problems += _wrong_seeds(publication, seeds[publication.lineage])
    check.span = f"{len(logs.all)} round logs, {len(before)} runs"
    return check


def _wrong_seeds(publication: RoundLogs, seed: int) -> Iterator[str]:
    """Yields the contributions whose random numbers are not those of their host's lowest partition.

    That is the smallest of the ranges or one before it, whose records brought nothing."""
    used: set[int] = set()
    for log in publication:
        own = log.terms[-1].seed
        partitions = range(log.smallest_partition + 1) if len(log.ranges) else ()
        if own in used or not any(own == _seed(seed, partition) for partition in partitions):
            where = f"snapshot {log.version} round {log.terms[-1].first_round} host {log.host}"
            yield f"{where}: seed {own} is of none of its partitions"
        used.add(own)


_seed = cache(contribution_seed)


def _fields(terms: Terms) -> dict[str, Any]:
    """All that stays as it is in a run."""
    return {name: value for name, value in vars(terms).items() if name != "first_round"}


def expected_terms(manifest: Manifest) -> dict[str, Any]:
    """Returns the round settings that led to a manifest, as the manifest records them."""
    settings = manifest.job_settings
    return {
        "learning_rate": _schedule(settings),
        "optimizer": manifest.model_spec.get("optimizer"),
        "average_optimizer_state": manifest.model_spec.get("average_optimizer_state"),
        "averaging_frequency": setting(settings, "train", "averaging_frequency"),
        "workers": manifest.workers,
        "slot": manifest.slot,
        "format": _format(settings),
        "columns_digest": columns_digest(manifest.schema),
        "model_digest": model_digest(manifest.model_spec),
        "topic_id": manifest.positions.topic_id,
        "seed": manifest.seed,
        "build": manifest.build,
    }


def _schedule(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule of the learning rate with all that it has."""
    found = setting(settings, "optimizer", "schedule")
    return {**(found if isinstance(found, Mapping) else {}), "rate": setting(settings, "optimizer", "learning_rate")}


def _format(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The format and its options, of those that this build knows."""
    name = setting(settings, "records", "format")
    try:
        given = dict(settings["records"])
        known = formats.options(name)
        return formats.checked({"name": name, **{key: given[key] for key in known if key in given}})
    except (UserMistake, LookupError, TypeError, ValueError):
        return {"name": name}


def setting(settings: Mapping[str, Any], section: str, name: str) -> Any:
    """A setting of a manifest's job, None where it has none."""
    found = settings.get(section)
    return found.get(name) if isinstance(found, Mapping) else None

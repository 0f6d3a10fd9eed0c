"""Forgeries of the round log, of manifests and of snapshots."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.topics.rounds import RANGE_DTYPE, SLOT_DTYPE
from tests.checks.verify.forger import Forger, unpacked
from tests.checks.verify.forgery_table import drop_logs, forgery, messages, versions
from tests.checks.verify.topics_in_memory import Written

# -- the round log -------------------------------------------------------------------------------------------------


@forgery
def the_newest_log_is_missing(written: Written) -> None:
    drop_logs(written, lambda version: version == versions(written)[-1])


@forgery
def the_newest_three_logs_are_missing(written: Written) -> None:
    gone = versions(written)[-3:]
    drop_logs(written, lambda version: version in gone)


@forgery
def all_logs_are_missing(written: Written) -> None:
    drop_logs(written, lambda version: True)


@forgery
def the_round_log_is_made_anew(written: Written) -> None:
    drop_logs(written, lambda version: True)
    written.partitions["rounds"][0].end = 0


@forgery
def the_first_log_is_missing(written: Written) -> None:
    drop_logs(written, lambda version: version == 2)


@forgery
def a_log_in_the_middle_is_missing(written: Written) -> None:
    drop_logs(written, lambda version: version == 5)


@forgery
def the_first_log_of_a_restored_lineage_is_missing(written: Written) -> None:
    drop_logs(written, lambda version: version == 10)


@forgery
def a_log_in_the_middle_is_missing_and_retention_took_the_first(written: Written) -> None:
    drop_logs(written, lambda version: version in (2, 5))
    written.partitions["rounds"][0].low = messages(written, "rounds")[0].offset


def drop_part(written: Written, part: int) -> None:
    long = next(each for each in messages(written, "rounds") if unpacked(each.value)["part"] == 1)
    version = unpacked(long.value)["version"]
    partition = written.partitions["rounds"][0]
    partition.messages = [
        each for each in partition.messages
        if (unpacked(each.value)["version"], unpacked(each.value)["part"]) != (version, part)
    ]  # fmt: skip


@forgery
def the_first_part_of_a_log_is_missing(written: Written) -> None:
    drop_part(written, 0)


@forgery
def the_second_part_of_a_log_is_missing(written: Written) -> None:
    drop_part(written, 1)


@forgery
def a_log_is_there_twice(written: Written) -> None:
    first = messages(written, "rounds")[0]
    written.append("rounds", first.value, first.key)


@forgery
def two_logs_are_swapped(written: Written) -> None:
    found = messages(written, "rounds")
    found[0], found[-1] = found[-1]._replace(offset=found[0].offset), found[0]._replace(offset=found[-1].offset)


@forgery
def a_tombstone_in_the_round_log(written: Written) -> None:
    written.append("rounds", None, b"3/0")


@forgery
def garbage_in_the_round_log(written: Written) -> None:
    written.append("rounds", b"\xc1garbage", b"3/0")


@forgery
def two_rows_of_a_record_of_many_are_not_trained(written: Written) -> Written:
    """Batches, ranges, counts and rows seen all say so."""

    def log(document: Any) -> None:
        slots = np.frombuffer(document["slots"], SLOT_DTYPE).copy()
        ranges = np.frombuffer(document["ranges"], RANGE_DTYPE).copy()
        starts = np.concatenate([[0], np.cumsum(slots["range_count"])])
        index = int(np.flatnonzero(ranges["trained"] >= 3)[0])
        slot = int(np.searchsorted(starts, index, side="right")) - 1
        ranges["trained"][index] -= 2
        slots["trained"][slot] -= 2
        slots["rows"][slot] -= 2
        document["slots"], document["ranges"] = slots.tobytes(), ranges.tobytes()

    def manifest(document: Any) -> None:
        if document["lineage"] == lineage:
            document["counts"]["trained"] -= 2
            document["rows_seen"] -= 2

    lineage = unpacked(messages(written, "rounds")[-1].value)["lineage"]
    version = versions(written)[-3]
    later = [each for each in versions(written) if each >= version]
    return Forger(written, manifests=dict.fromkeys(later, manifest), logs={version: log}).forged()


# -- manifests -----------------------------------------------------------------------------------------------------


@forgery
def a_thousand_rows_seen_more_everywhere(written: Written) -> Written:
    def more(document: Any) -> None:
        document["rows_seen"] += 1000

    return Forger(written, manifests=dict.fromkeys(range(1, 100), more)).forged()


@forgery
def a_position_bumped_where_the_log_has_no_range(written: Written) -> Written:
    newest = versions(written)[-1]
    logs = [unpacked(each.value) for each in messages(written, "rounds") if unpacked(each.value)["version"] == newest]
    ranges = np.concatenate([np.frombuffer(log["ranges"], RANGE_DTYPE) for log in logs])
    quiet = min({0, 1, 2} - set(ranges["partition"].tolist()))

    def bump(document: Any) -> None:
        document["positions"]["partitions"][quiet][0] += 1

    return Forger(written, manifests={newest: bump}).forged()


@forgery
def another_topic_id_without_a_gap(written: Written) -> Written:
    def change(document: Any) -> None:
        document["positions"]["topic_id"] = "another"

    def change_terms(document: Any) -> None:
        for terms in document["terms"]:
            terms["topic_id"] = "another"

    newest = versions(written)[-1]
    return Forger(written, manifests={newest: change}, logs={newest: change_terms}).forged()


@forgery
def a_run_that_control_does_not_know(written: Written) -> Written:
    def change(document: Any) -> None:
        document["run"] = {"number": 99, "id": "ab" * 16}

    newest = versions(written)[-1]
    return Forger(written, manifests={newest: change}, logs={newest: change}).forged()


@forgery
def another_lineage_in_manifest_and_log(written: Written) -> Written:
    def change(document: Any) -> None:
        document["lineage"] = "ab" * 16

    newest = versions(written)[-1]
    return Forger(written, manifests={newest: change}, logs={newest: change}).forged()


@forgery
def the_newest_snapshot_is_gone(written: Written) -> None:
    partition = written.partitions["snapshots"][0]
    partition.messages = partition.messages[: next(
        at for at in range(len(partition.messages) - 2, -1, -1) if (partition.messages[at].key or b"").endswith(b"/m")
    ) + 1]  # fmt: skip


@forgery
def a_chunk_is_missing(written: Written) -> None:
    del messages(written, "snapshots")[-2]


@forgery
def a_chunk_is_altered(written: Written) -> None:
    found = messages(written, "snapshots")
    value = found[-2].value or b""
    found[-2] = found[-2]._replace(value=bytes([value[0] ^ 1]) + value[1:])


@forgery
def a_chunk_of_no_snapshot(written: Written) -> None:
    written.append("snapshots", b"chunk", b"s/0099/c/0000")


@forgery
def garbage_in_the_snapshots(written: Written) -> None:
    written.append("snapshots", b"\xc1garbage", b"s/0001/m")


@forgery
def a_message_without_a_key_in_the_snapshots(written: Written) -> None:
    written.append("snapshots", b"value")


@forgery
def a_tombstone_of_the_newest_manifest(written: Written) -> None:
    written.append("snapshots", None, messages(written, "snapshots")[-1].key)

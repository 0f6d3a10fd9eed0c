"""Lines of replay and verify without which something wrong goes unseen."""

from __future__ import annotations

from tests.mutants.guard import Guard, never

_REPLAY = "streamtrain/checks/replay/"
_VERIFY = "streamtrain/checks/verify/"
_FORGERIES = "test_a_forgery"
_MANIFESTS = "test_forging.py::test_a_field"
_LOG_SAYS = "test_a_log_that_differs_is_found"

REPLAY = (
    Guard(
        "The mean depends on which worker is added first.",
        "native/state/mean.cpp",
        "(p * static_cast<f64>(a[i]) + q * static_cast<f64>(b[i])) + r * static_cast<f64>(c[i])",
        "test_the_workers_are_added_in_their_order",
        "(p * static_cast<f64>(a[i]) + r * static_cast<f64>(c[i])) + q * static_cast<f64>(b[i])",
    ),
    Guard(
        "Replay gives a record that spans two ranges to the first alone.", "native/source/log.cpp",
        "    partition.next += count - (wanted_ == 0 && shares_last_ ? 1 : 0);\n",
        "test_the_bits_are_those_of_ingest", "    partition.next += count;\n",
    ),
    Guard(
        "Replay does not compare losses.", _REPLAY + "engine.py",
        "            if (found := self._arena.slot_result(first_slot + index)) != (expected := _result(slot))\n",
        _LOG_SAYS, "            if (found := self._arena.slot_result(first_slot + index)) == (expected := None)\n",
    ),
    Guard(
        "Replay does not compare the chain of round logs.", _REPLAY + "replayed_state.py",
        '            ("chain of round logs", manifest.chain, self._chain),\n', _LOG_SAYS,
    ),
    never(
        "Replay does not compare parameters.", _REPLAY + "replayed_state.py", "bytes(ours) != bytes(theirs)",
        "test_parameters_and_trainer_state_are_compared",
    ),
    Guard(
        "Two builds of different native sources have one name.", "native/source_digest.cmake",
        '  string(APPEND listing "${path} ${digest}\\n")\n', "test_the_native_part_is_over_every_native_source",
        '  string(APPEND listing "${path}\\n")\n',
    ),
)  # fmt: skip

VERIFY = (
    Guard(
        "Verify misses a round log that is gone.", _VERIFY + "fold.py", "        if self.logs.removed(last):",
        _FORGERIES, "        if True:",
    ),
    never(
        "Verify does not compare a manifest with the logs before it.", _VERIFY + "fold.py",
        "folded is not None and value != folded", _MANIFESTS,
    ),
    never("Verify does not compare positions.", _VERIFY + "frontier.py", "theirs.get(partition) != place", _FORGERIES),
    Guard(
        "Verify accepts ranges that overlap.", "topics/log_rules.py",
        "    for index in np.flatnonzero((froms[1:] != tos[:-1]).any(axis=1) & same)[:5]:",
        "test_ranges_that_overlap_within_a_log", "    for index in ():",
    ),
    never(
        "Verify accepts a run that control does not know.", _VERIFY + "runs.py", "entry is None or entry.run != run",
        "test_a_field_of_a_control_entry",
    ),
    never(
        "Verify does not miss the newest snapshot.", _VERIFY + "runs.py",
        "newest_before is not None and newest_before.version > ours.version", _FORGERIES,
    ),
    never(
        "Verify accepts settings with another digest.", _VERIFY + "manifests.py",
        "settings_digest(manifest.job_settings) != manifest.config_digest", _MANIFESTS,
    ),
    Guard(
        "Verify does not count a record's rows.", _VERIFY + "record_check.py", "            expected = int(part[name])",
        _FORGERIES, "            expected = count",
    ),
    Guard(
        "Verify does not miss a dead letter.", _VERIFY + "dead_letter_check.py",
        "            missing = int((dead - tally.dead).clip(min=0).sum()) - tally.left_out", _FORGERIES,
        "            missing = 0",
    ),
    Guard(
        "Verify accepts a dead letter of a round that was never published.", _VERIFY + "dead_letter_check.py",
        "            older = self._logs.cut and (first is None or letter.run <= first.run.number)", _FORGERIES,
        "            older = True",
    ),
    Guard(
        "Verify accepts two answers to one request.", _VERIFY + "answered.py", "        if not bits.put(offset):",
        _FORGERIES, "        if bits.put(offset) is None:",
    ),
    Guard(
        "Verify does not miss an answer.", _VERIFY + "answered.py",
        "                check.expect(request.offset in bits, text)", _FORGERIES, "                assert text",
    ),
    Guard(
        "Verify accepts an altered chunk.", _VERIFY + "snapshot_check.py",
        "        except SnapshotError as error:\n            yield str(error)", _FORGERIES,
        "        except SnapshotError:\n            return",
    ),
    never(
        "Verify accepts a NaN under the right digests.", _VERIFY + "snapshot_check.py", "not np.isfinite(array).all()",
        "test_a_payload_that_is_not_the_models",
    ),
)  # fmt: skip

GUARDS = (*REPLAY, *VERIFY)

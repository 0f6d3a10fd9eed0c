"""The checks of verify: without each one a forgery passes."""

from __future__ import annotations

_V = "streamtrain/checks/verify/"
_FORGERY = "tests/checks/verify/test_forging.py::test_a_forgery[later-{}]"
_MANIFEST = "tests/checks/verify/test_forging.py::test_a_field_of_a_manifest_after_compaction"
_LOG = "tests/checks/verify/test_forging.py::test_a_field_of_a_round_log[14]"
_LETTER = "tests/checks/verify/test_forging.py::test_a_field_of_a_dead_letter"
_FOR_IT = "tests/checks/verify/test_what_finds_it.py::test_the_check_that_is_for_it[{}]"
_KEY = "tests/checks/verify/test_forging.py::test_a_key[{}]"
_FILES = "tests/checks/verify/test_forging_of_files.py::test_a_forgery_is_named[{}]"
_PREDICTION = "tests/checks/verify/test_forging.py::test_a_field_of_a_prediction"

GUARDS = [
    (
        "files are those of their digests", _V + "files.py",
        "if identity_of(files) != identity:", "if False:", _FILES.format("digests are swapped"),
    ),
    (
        "a file is read to its end before the next", _V + "files.py",
        "elif at < file.rows and any(places[number + 1 :]):", "elif False:",
        _FILES.format("the rest of the first file is left"),
    ),
    (
        "no more rows of a file are read than it has", _V + "files.py",
        "if at > file.rows:", "if False:", _FILES.format("a file is a row shorter"),
    ),
    (
        "a log that retention has not removed is missed", _V + "fold.py",
        "        if self.logs.removed(last):", "        if True:",
        _FOR_IT.format("the newest log is missing"),
    ),
    (
        "a log of a lineage's beginning is missed", _V + "fold.py",
        "        if before is not None or not self.logs.cut:  # then it is the lineage's first log",
        "        if False:",
        _FOR_IT.format("the first log of a restored lineage is missing"),
    ),
    (
        "rows seen begin at 0 or at a restored snapshot", _V + "fold.py",
        "            self._state.rows_seen = begun.pop() if len(begun) == 1 else None",
        "            self._state.rows_seen = None",
        _FORGERY.format("a thousand rows seen more everywhere"),
    ),
    (
        "a lineage's snapshots agree on where it came from", _V + "fold.py",
        '            "imported": (manifest.imported, state.imported),\n', "",
        "tests/checks/verify/test_forging.py::test_a_field_of_a_manifest_of_an_import",
    ),
    (
        "a manifest is compared with the fold", _V + "fold.py",
        "            if folded is not None and told != folded:", "            if False:", _MANIFEST,
    ),
    (
        "positions are compared in every partition", _V + "frontier.py",
        "            if told.get(partition) != place:", "            if False:",
        _FORGERY.format("a position bumped where the log has no range"),
    ),
    (
        "ranges follow one another within a log", _V + "frontier.py",
        "        for index in np.flatnonzero((froms[1:] != tos[:-1]).any(axis=1))[:5]:", "        for index in ():",
        "tests/checks/verify/test_what_finds_it.py::test_ranges_that_overlap_within_a_log",
    ),
    (
        "every part of a log is there", _V + "logs.py",
        "        if part.part != len(parts):", "        if False:",
        _FOR_IT.format("the first part of a log is missing"),
    ),
    (
        "a run is one that control knows", _V + "runs.py",
        "        if entry is None or entry.run != run:", "        if False:",
        "tests/checks/verify/test_forging.py::test_a_field_of_a_control_entry[run/2]",
    ),
    (
        "control names the newest snapshot", _V + "runs.py",
        "    if found.newest is None or found.newest.version < ours.version:", "    if False:",
        _FORGERY.format("control names no newest"),
    ),
    (
        "the topic goes as far as control says", _V + "runs.py",
        "    elif newest_before is not None and newest_before.version > ours.version:", "    elif False:",
        _FOR_IT.format("the newest snapshot is gone"),
    ),
    (
        "mentions of a snapshot agree", _V + "manifests.py",
        "        if digests.setdefault(version, (digest, where))[0] != digest:", "        if False:", _LOG,
    ),
    (
        "settings have their digest", _V + "manifests.py",
        "    if settings_digest(manifest.job_settings) != manifest.config_digest:", "    if False:", _MANIFEST,
    ),
    (
        "terms are the settings of their run", _V + "terms.py",
        "                check.expect(value == expected[name], f\"{text}, its run has {expected[name]!r:.60}\")",
        "                assert text and value is not check",
        _LOG,
    ),
    (
        "records have the rows that ranges tell of", _V + "records.py",
        "            told = int(part[name])", "            told = count",
        _FORGERY.format("two rows of a record of many are not trained"),
    ),
    (
        "dead rows have dead letters", _V + "dead_letters.py",
        "            missing = int((dead - told.dead).clip(min=0).sum()) - told.left_out", "            missing = 0",
        _FORGERY.format("a dead letter is missing"),
    ),
    (
        "a letter is of a round that was published", _V + "dead_letters.py",
        "            older = self._logs.cut and (first is None or letter.run <= first.run.number)",
        "            older = True",
        _FOR_IT.format("a dead letter of an unknown run"),
    ),
    (
        "a letter's bytes are its record's", _V + "letters.py",
        "            same = same and letter.key == _kept(message.key)", "            same = True",
        _LETTER,
    ),
    (
        "a letter's rows are decoded again", _V + "decoding.py",
        "        elif not (_same(told.path, found.path) and _same(told.reason, found.reason)):",
        "        elif False:",
        _FORGERY.format("a dead letter tells another reason"),
    ),
    (
        "no request is answered twice", _V + "answered.py",
        "        if not asked.put(offset):", "        if asked.put(offset) is None:",
        _FORGERY.format("a prediction is committed twice"),
    ),
    (
        "no request is passed over", _V + "answered.py",
        "                check.expect(request.offset in asked, told)", "                assert told",
        _FORGERY.format("a request was never answered"),
    ),
    (
        "a prediction has its snapshot's digest", _V + "predictions.py",
        "        check.expect(same, f\"{prediction.where}: version {version} has another digest\")",
        "        assert same in (True, False)",
        _PREDICTION,
    ),
    (
        "chunks have their digests", _V + "snapshots.py",
        "        except SnapshotError as error:\n            yield str(error)",
        "        except SnapshotError:\n            return",
        _FORGERY.format("a chunk is altered"),
    ),
    (
        "ranges of another topic id are not asked for", _V + "sources.py",
        "self._topic is not None and self._topic.topic_id == terms.topic_id", "self._topic is not None",
        "tests/checks/verify/test_good_histories.py::test_records_made_again_are_a_gap_and_the_old_ones_are_not_asked_for",
    ),
    (
        "a control entry has its own key", _V + "runs.py",
        "(written.key, written.value) != (message.key, message.value)", "written.value != message.value",
        _KEY.format("control"),
    ),
    (
        "a letter's key is its record's", _V + "letters.py",
        "and letter.key == _kept(message.key)", "and letter.key in (None, message.key)", _KEY.format("dead_letters"),
    ),
]  # fmt: skip

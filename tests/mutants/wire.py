"""Guards of the wire of snapshots and rounds, and of what is written by it."""

_REPLAY = "tests/checks/replay/test_replay.py::test_"
_FOUND = f"{_REPLAY}what_a_log_says_otherwise_is_found"
_REFUSED = f"{_REPLAY}a_log_that_cannot_be_followed_is_refused"
_LINEAGE = "streamtrain/checks/replay/lineage.py"
_SPANS = (
    'spans = ("total", "updates", "clipped", "evicted", "rate_left", '
    '*(("window",) if self._window_is_known else ()))'
)

GUARDS = [
    (
        "a slow reader is not a silent Kafka",
        "streamtrain/kafka/reader.py",
        "                until = time.monotonic() + TIMEOUT_S  # the time a caller takes is not Kafka's\n",
        "",
        "tests/regress/test_0103_a_slow_reader_of_a_topic.py::test_a_slow_caller_gets_them_all",
    ),
    (
        "a restored lineage counts from 0",
        "streamtrain/run/lineage.py",
        "    lineage.counts = Counts()\n",
        "",
        "tests/e2e/test_train.py::test_restore_publishes_an_older_snapshot_at_the_newest_positions",
    ),
    (
        "a chunk of a snapshot's file is what its manifest says",
        "streamtrain/moving/snapshot_file.py",
        "            if sha256(chunk) != digest:",
        "            if False:",
        "tests/moving/test_snapshot_file.py::test_a_byte_that_has_changed_is_said",
    ),
    (
        "no NaN is imported",
        "streamtrain/moving/snapshot_file.py",
        "                if not np.isfinite(np.frombuffer(piece, place.dtype)).all():",
        "                if False:",
        "tests/moving/test_snapshot_file.py::test_a_number_that_is_none_is_refused_though_every_digest_is_right",
    ),
    (
        "a job that has a snapshot takes no other",
        "streamtrain/moving/importing.py",
        "        if newest is None:\n            return\n        manifest = newest.manifest",
        "        return\n        manifest = newest.manifest",
        "tests/e2e/test_moving.py::test_a_live_trainer_is_not_robbed",
    ),
    (
        "deaths of workers are counted",
        "native/ring/supervisor_end.h",
        "        control.supervisor.worker_deaths.fetch_add(1);\n",
        "",
        "tests/regress/test_0102_history_without_snapshots.py::"
        "test_deaths_events_and_ends_of_runs_outlive_the_snapshots",
    ),
    (
        "the newest event is by event time",
        "native/train/round_log.cpp",
        "newest_event_ms >= 0 ? newest_event_ms : newest_timestamp_ms",
        "newest_timestamp_ms",
        "tests/regress/test_0102_history_without_snapshots.py::"
        "test_deaths_events_and_ends_of_runs_outlive_the_snapshots",
    ),
    (
        "replay compares losses",
        "streamtrain/checks/replay/engine.py",
        "            if (found := self._arena.slot_result(first_slot + index)) != (told := _result(slot))\n",
        "            if (found := self._arena.slot_result(first_slot + index)) == (told := None)\n",
        _FOUND,
    ),
    (
        "replay compares the window's scores",
        _LINEAGE,
        _SPANS,
        'spans = ("total", "updates", "clipped")',
        _FOUND,
    ),
    (
        "replay compares the scores in total",
        _LINEAGE,
        _SPANS,
        'spans = ("updates", "clipped", *(("window",) if self._window_is_known else ()))',
        _FOUND,
    ),
    (
        "replay compares the chain",
        _LINEAGE,
        '            ("chain of round logs", manifest.chain, self._chain),\n',
        "",
        _FOUND,
    ),
    (
        "replay compares the counts",
        _LINEAGE,
        '            ("counts", manifest.counts, self._counts),\n',
        "",
        _FOUND,
    ),
    (
        "replay holds the terms' columns and model against the start's",
        _LINEAGE,
        "            if told != ours:\n",
        "            if False:\n",
        _REFUSED,
    ),
    (
        "replay reads the records of the terms' topic id",
        "streamtrain/checks/replay/records.py",
        "        if terms.topic_id != self._topic_id:\n",
        "        if False:\n",
        f"{_REPLAY}records_of_another_topic_id_are_not_these",
    ),
    (
        "ranges share a record that straddles them",
        "native/source/log.cpp",
        "    partition.next += count - (wanted_ == 0 && shares_last_ ? 1 : 0);\n",
        "    partition.next += count;\n",
        "tests/train/test_log_filler.py::test_the_bits_are_those_of_ingest",
    ),
    (
        "a log leads back in a partition",
        "native/source/log.cpp",
        "        if (found->second.passed <= offset) return found->second;\n",
        "        if (true) return found->second;\n",
        "tests/train/test_log_filler.py::test_a_partition_is_opened_once_and_again_where_a_log_leads_back",
    ),
    (
        "a source that gives nothing for long is told",
        "native/train/log_filler.cpp",
        "return LogStatus::silent;",
        "return LogStatus::lacking;",
        "tests/train/test_log_filler.py::test_a_range_beyond_the_end_is_missed_and_a_silent_source_is_told",
    ),
    (
        "replay names records that are gone",
        "streamtrain/checks/replay/records.py",
        "        if offset < low:\n",
        "        if False:\n",
        f"{_REPLAY}over_records_that_retention_has_removed",
    ),
    (
        "replay keeps to each log's terms",
        "streamtrain/checks/replay/lineage.py",
        "        same = self._terms is not None and replace(self._terms, first_round=terms.first_round) == terms\n",
        "        same = self._terms is not None\n",
        "tests/regress/test_0101_replay_over_changed_settings.py::"
        "test_each_setting_changed_between_starts_and_the_snapshots_between_gone",
    ),
    (
        "the build is also the Python that runs",
        "streamtrain/build.py",
        '_PACKAGES = ("streamtrain.compute", "streamtrain.columns")',
        '_PACKAGES = ("streamtrain.compute",)',
        "tests/test_build.py::test_python_that_decides_bits_counts_as_it_runs",
    ),
    (
        "the build is every native source",
        "native/source_digest.cmake",
        '  string(APPEND listing "${path} ${digest}\\n")\n',
        '  string(APPEND listing "${path}\\n")\n',
        "tests/test_build.py::test_the_native_part_is_over_every_native_source",
    ),
    (
        "archive time of an earlier run",
        "streamtrain/run/publication.py",
        "        archived_ms = max((entry.created_ms for entry in lineage.kept if entry.archived), default=0)\n",
        "        archived_ms = 0\n",
        "tests/regress/test_0100_archive_every_survives_restarts.py::test_a_second_run_within_the_time_archives_nothing",
    ),
    (
        "parts of one log",
        "topics/rounds.py",
        "        if (_header(part), part.digest, part.parts) != identity:\n",
        "        if part.parts != identity[2]:\n",
        "tests/topics/test_rounds.py::test_a_long_log_is_cut_and_joined",
    ),
    (
        "rounds keep to their terms",
        "topics/rounds.py",
        "        _check_terms(log, where)\n",
        "        pass\n",
        "tests/topics/test_rounds.py::test_rounds_that_do_not_keep_to_their_terms_are_found",
    ),
    (
        "a log's digest covers its columns",
        "topics/rounds.py",
        "        hashed.update(column)\n",
        "",
        "tests/topics/test_rounds.py::test_the_digest_of_a_log_is_over_all_of_it_but_its_snapshot_and_its_parts",
    ),
]

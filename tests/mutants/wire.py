"""Guards of the wire of snapshots and rounds, and of what is written by it."""

GUARDS = [
    (
        "archive time of an earlier run",
        "streamtrain/processes/_publication.py",
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

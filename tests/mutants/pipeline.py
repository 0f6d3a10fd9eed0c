"""Guards of rounds, ingest and publication: (name, file, its line, the line without it, the test that must go red)."""

from __future__ import annotations

_DUE = "tests/regress/test_0172_due_publication_closes_the_round.py"
_FLOOD = "tests/regress/test_0171_flood_of_bad_records.py"
_AVERAGER = "tests/regress/test_0170_averager_dies.py"
_ENDS = "tests/regress/test_0330_every_run_says_how_it_ended.py"
_DEAF = "tests/regress/test_0312_a_deaf_reader.py::test_ingest_reads_on_with_another"

GUARDS = [
    (
        "a worker that begins a round has not published it",
        "native/ring/worker_end.cpp",
        "if (control().workers[w].published_round.load() != round) return false;",
        "if (control().workers[w].round.load() != round) return false;",
        "tests/regress/test_0450_a_worker_stopped_as_it_begins.py::test_a_round_waits_for_it",
    ),
    (
        "what is paused is not unheard",
        "native/kafka/consumer.cpp",
        "        if (paused_.contains(partition)) continue;\n",
        "",
        "tests/kafka/test_native_clients.py::test_a_consumer_whose_partitions_are_paused_is_not_deaf",
    ),
    (
        "ingest replaces a consumer that hears nothing",
        "streamtrain/run/roles/ingest.py",
        "    if deaf:\n",
        "    if False:\n",
        f"{_DEAF}[consume_batch_queue=150*]",
    ),
    (
        "ingest's next consumer reads on where the one before was",
        "native/train/slot_filler.cpp",
        "found.push_back({position.offset, position.row, static_cast<i32>(found.size())});",
        "found.push_back({position.offset + 1, position.row, static_cast<i32>(found.size())});",
        f"{_DEAF}[consume_batch_queue=150*]",
    ),
    (
        "a round is judged from the round before it",
        "native/train/averager.cpp",
        "before = end_.judged(round - 1);",
        "before = end_.judged(round);",
        f"{_AVERAGER}::test_a_round_whose_averager_died_is_not_judged_twice",
    ),
    (
        "a crash outside a batch counts towards the end of the job",
        "streamtrain/run/host.py",
        "-code in _CRASHES and slot >= 0:",
        "-code in _CRASHES:",
        f"{_AVERAGER}::test_crashes_between_batches_end_the_job",
    ),
    (
        "no round opens while too many dead letters are unpublished",
        "native/ring/ingest_end.cpp",
        " && !dead_letters_.full(); };",
        "; };",
        f"{_FLOOD}::test_a_flood_goes_out_in_bounded_publications_whatever_the_interval",
    ),
    (
        "dead letters close a round",
        "native/train/slot_filler.cpp",
        " || end_.dead_letters().round_full()) close_round",
        ") close_round",
        f"{_FLOOD}::test_a_flood_goes_out_in_bounded_publications_whatever_the_interval",
    ),
    (
        "a record's bytes are in one letter of a round",
        "native/ring/dead_letter_ring.h",
        "if (again || value == nullptr ||",
        "if (value == nullptr ||",
        f"{_FLOOD}::test_long_letters_are_bounded_by_their_bytes",
    ),
    (
        "a due publication closes the open round",
        "native/train/slot_filler.cpp",
        "round_started_ns_ + round_interval_ns_, end_.publication_due_ns());",
        "round_started_ns_ + round_interval_ns_, never);",
        f"{_DUE}::test_rows_are_published_at_the_publications_interval_not_at_the_rounds",
    ),
    (
        "a round is closed for a publication once",
        "native/ring/ingest_end.cpp",
        "return due_ns == 0 || answered ?",
        "return due_ns == 0 ?",
        f"{_DUE}::test_a_publication_that_is_not_taken_at_once_closes_one_round",
    ),
    (
        "rounds that close only when full are not closed for a publication",
        "streamtrain/run/publication_clock.py",
        "if self._closes_rounds:",
        "if True:",
        f"{_DUE}::test_rounds_that_close_only_when_full_stay_open",
    ),
    (
        "the pause grows only after runs that published nothing",
        "streamtrain/run/back_off.py",
        "if published or lasted_s > _LONG_RUN_S:",
        "if lasted_s > _LONG_RUN_S:",
        "tests/run/test_back_off.py::test_it_grows_only_from_one_run_that_published_nothing_to_the_next",
    ),
    (
        "the supervisor knows which runs published",
        "streamtrain/run/train.py",
        'self._published |= event["event"] == "published"',
        "pass",
        "tests/run/test_back_off.py::test_runs_that_published_follow_each_other_at_once",
    ),
    (
        "a look at the coordinator's beat counts a second at most",
        "native/ring/silence.h",
        "std::min(now_ns - looked_ns_, LOOK_NS)",
        "(now_ns - looked_ns_)",
        "tests/regress/test_0173_a_sleep_is_no_silence.py::test_silence_is_counted_in_looks",
    ),
    (
        "the coordinator's threads share a heap",
        "streamtrain/run/roles/coordinator.py",
        "    share_one_heap()\n",
        "",
        f"{_FLOOD}::test_the_coordinators_memory_stays_as_small",
    ),
    (
        "a publication is due when ingest waits for it",
        "streamtrain/run/publishing.py",
        'due = progress["held"] or ended or self._failure',
        "due = ended or self._failure",
        f"{_FLOOD}::test_a_flood_goes_out_in_bounded_publications_whatever_the_interval",
    ),
    (
        "a publication is not pending for ever",
        "streamtrain/run/kafka_publisher.py",
        "        elif self._watch.answered_s - self._pending_from_s > _PENDING_S:\n",
        "        elif False:\n",
        "tests/run/test_kafka_publisher.py::test_a_publication_that_stays_pending_while_kafka_answers_ends_the_run",
    ),
    (
        "a replaced run is not ready",
        "streamtrain/telemetry/trainer.py",
        "    def _on_replaced(self, event: Event) -> None:\n        self.works = False\n",
        "    def _on_replaced(self, event: Event) -> None:\n        self.works = True\n",
        "tests/test_telemetry.py::test_a_replaced_trainer_is_not_ready",
    ),
    (
        "a run that is ended says why",
        "streamtrain/run/train.py",
        "                self._let_say_why(ended)\n",
        "",
        f"{_ENDS}::test_a_drain_that_takes_too_long",
    ),
    (
        "a refused publication is the end that is told",
        "streamtrain/run/roles/coordinator.py",
        "        passing = isinstance(error, Replaced | KafkaBroken | KafkaUnreachable)\n",
        "        passing = True\n",
        f"{_ENDS}::test_a_refused_publication",
    ),
    (
        "the run that followed tells of one that could not",
        "streamtrain/clients/history.py",
        "    return None if followed_by is None else RunEnded(",
        "    return None if True else RunEnded(",
        f"{_ENDS}::test_a_run_whose_processes_are_killed",
    ),
]

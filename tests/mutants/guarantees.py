"""Lines that hold up a guarantee of training and following."""

from __future__ import annotations

from tests.mutants.guard import Guard, never

_OUTCOMES = "test_what_follows_from_an_outcome"
_ROUND_AGAIN = "test_a_batch_that_is_not_finite_is_left_out_and_the_round_done_again"
_NOT_FINITE = "test_every_published_value_is_finite_or_training_says_that_it_diverges"
_LETTERS_GO = "test_dead_letters_go_with_their_rounds_and_make_room"
_ROUND_STARTS = "test_a_round_begins_from_the_start_as_often_as_it_does"
_FORGOTTEN = "test_a_run_leaves_whose_past_kafka_has_forgotten"

EXACTLY_ONCE = (
    Guard(
        "A producer goes on after a fatal error.",
        "native/kafka/transaction.cpp",
        "    if (outcome.fatal) return Next::renew;\n",
        _OUTCOMES,
    ),
    Guard(
        "A producer is used again after a commit whose outcome is unknown.",
        "native/kafka/transaction.cpp",
        "    give_up();\n    return {Ending::unknown",
        "test_the_next_transaction_follows_from_the_one_before",
        "    return {Ending::unknown",
    ),
    never(
        "A trainer publishes again what a lost answer had already committed.",
        "streamtrain/kafka/transaction.py",
        "newest is not None and newest.digest == batch.digest",
        "test_a_commit_whose_answer_is_lost_is_not_made_twice",
    ),
    Guard(
        "A trainer commits rows of a records topic that was deleted and created again.",
        "streamtrain/kafka/transaction.py",
        "            batch.check(_CHECK_S)\n",
        "test_what_its_check_refuses_is_not_committed_and_holds_nobody_up",
    ),
    never(
        "Resending takes a transaction with an unknown outcome for a committed one.",
        "streamtrain/kafka/once.py",
        "ended.ending is not KafkaEnding.COMMITTED",
        "test_who_goes_on_from_its_position_writes_once",
    ),
    Guard(
        "A predictor reads on at offsets of a topic that was deleted.",
        "native/kafka/consumer.cpp",
        "        if (!of.empty() && !identity_.empty() && of != identity_) part.offset = rd::invalid;\n",
        "test_offsets_of_a_topic_deleted_before_count_for_nothing",
    ),
    Guard(
        "A record that spans two slots trains its first rows twice.",
        "native/train/slot_filler.cpp",
        "        position.row = range.to_row;\n",
        "test_the_bits_are_those_of_ingest",
        "        position.row = 0;\n",
    ),
)

CONSERVATION = (
    Guard(
        "Dead rows are missing in the counts.",
        "native/train/slot_filler.cpp",
        "        range.dead += tally.dead;\n",
        _LETTERS_GO,
    ),
    Guard(
        "A dead row has no dead letter.",
        "native/train/slot_filler.cpp",
        "        if (!tally.dead_rows.empty()) add_letter(record, tally.dead_rows);\n",
        _LETTERS_GO,
    ),
    Guard(
        "A slot's dead letters never reach the coordinator.",
        "native/train/round_cutter.cpp",
        "    end_.dead_letters().write(slot.letters, round_, slot_);\n",
        _LETTERS_GO,
    ),
    Guard(
        "Published dead letters keep their room in the ring.",
        "streamtrain/run/publishing.py",
        "        self._ring.release_dead_letters(len(letters.ring), letters.entries)\n",
        _LETTERS_GO,
    ),
    Guard(
        "A failed run ends before it has published its dead letters.",
        "streamtrain/run/publishing.py",
        "if not self.pending and not waiting and (ended or self._failure):",
        "test_too_many_dead_letters_end_the_run_once_they_are_published",
        "if self._failure or (not self.pending and not waiting and ended):",
    ),
)

WHOLE_SNAPSHOTS = (
    Guard(
        "A reader accepts an altered chunk.",
        "topics/chunks.py",
        "        if sha256(value) == self._missing[key]:\n",
        "test_a_damaged_newest_snapshot_is_an_error",
        "        if True:\n",
    ),
    never(
        "A follower's version goes down.",
        "streamtrain/kafka/follower.py",
        "waiting.version <= self._version",
        "test_versions_a_follower_sees_never_go_down",
    ),
    Guard(
        "A start accepts an older snapshot that was written after a newer one.",
        "streamtrain/kafka/snapshot_reader.py",
        "                    raise self.out_of_order(other, located)\n",
        "test_an_older_snapshot_written_after_a_newer_one_is_an_error",
        "                    continue\n",
    ),
)

LINEAGE = (
    Guard(
        "A start continues below the snapshot that control names.",
        "streamtrain/run/lease.py",
        "    if last is None or (newest is not None and newest.digest == last.digest):\n",
        "test_a_snapshots_topic_that_lost_everything_is_refused_and_fresh_goes_on_above",
        "    if True:\n",
    ),
    Guard(
        "A new lineage reuses a version that was given before.",
        "streamtrain/run/start.py",
        ".above(last.version if last else 0), state)\n",
        "test_a_snapshots_topic_that_lost_everything_is_refused_and_fresh_goes_on_above",
        ", state)\n",
    ),
    Guard(
        "A restored lineage keeps the counts of the one before.",
        "streamtrain/run/lineage.py",
        "    lineage.counts = Counts()\n",
        "test_restore_publishes_an_older_snapshot_at_the_newest_positions",
    ),
    Guard(
        "A round log's digest leaves its columns out.",
        "topics/rounds.py",
        "        hashed.update(column)\n",
        "test_the_digest_of_a_log_is_over_all_of_it_but_its_snapshot_and_its_parts",
    ),
)

FINITE = (
    Guard(
        "A batch that makes parameters infinite stays in its round.",
        "native/train/worker_round.cpp",
        "    if (step.not_finite) {\n",
        _ROUND_AGAIN,
        "    if (false) {\n",
    ),
    Guard(
        "A worker goes on from parameters that a rejected batch has changed.",
        "native/train/worker_round.cpp",
        "    if (!finite) restart(plan);\n",
        _ROUND_AGAIN,
    ),
    Guard(
        "A run goes on although half of its newest batches are rejected.",
        "native/train/averager.cpp",
        "2 * recent_rejected >= recent_slots) return true;",
        _NOT_FINITE,
        "false) return true;",
    ),
    never(
        "An imported snapshot holds a NaN.",
        "streamtrain/moving/snapshot_file.py",
        "not np.isfinite(np.frombuffer(piece, place.dtype)).all()",
        "test_a_number_that_is_none_is_refused_though_every_digest_is_right",
    ),
    Guard(
        "A prediction is NaN or infinite.",
        "native/predict/answers.cpp",
        "    return std::all_of(row, row + width, [](f32 x) { return std::isfinite(x); });\n",
        "test_a_prediction_that_is_not_finite_is_an_error_in_its_place",
        "    return row || width;\n",
    ),
)

ZOMBIES = (
    never(
        "A replaced trainer stays.",
        "streamtrain/run/kafka_publisher.py",
        "self._watch.replaced_by is not None",
        "test_what_the_watch_has_seen_ends_the_run",
    ),
    never(
        "A run goes on although Kafka has forgotten that it took the job.",
        "streamtrain/kafka/transaction.py",
        "holder is None or holder.run != self.run",
        _FORGOTTEN,
    ),
    Guard(
        "An older run counts as the holder of the job.",
        "topics/control.py",
        "self.runs[max(self.runs)]",
        "test_the_holder_is_the_run_of_the_highest_number_wherever_its_entry_lies",
        "self.runs[list(self.runs)[-1]]",
    ),
)

LOST_WORKERS = (
    Guard(
        "A round is averaged before all its workers have published it.",
        "native/ring/worker_end.cpp",
        "published_round.load() != round) return false;",
        "test_mean_is_weighted_by_rows_in_worker_order",
        "published_round.load() < -1) return false;",
    ),
    Guard(
        "A repeated average counts rejected batches twice.",
        "native/train/averager.cpp",
        "before = end_.judged(round - 1);",
        "test_a_round_whose_averager_died_is_not_counted_twice",
        "before = end_.judged(round);",
    ),
    Guard(
        "A worker's weight counts twice in a round that it repeats.",
        "native/train/worker_round.cpp",
        "    weight_sum_ = 0;\n",
        _ROUND_AGAIN,
    ),
    Guard(
        "A worker's share of the statistics keeps what an earlier try gathered.",
        "native/state/parts.h",
        "    std::memset(own.share + block.part_offset, 0, block.bytes());\n",
        _ROUND_STARTS,
    ),
    Guard(
        "A first round that is repeated loses its statistics pass.",
        "native/train/worker_round.cpp",
        "statistics_done_ ? memory().base : nullptr",
        "test_a_first_round_begun_again_is_standardised_by_its_pass",
        "nullptr",
    ),
    Guard(
        "A snapshot changes while it is published.",
        "native/ring/worker_end.cpp",
        "while (buffer == start || buffer == pinned) ++buffer;",
        "test_the_pinned_mean_is_left_alone",
        "while (buffer == start) ++buffer;",
    ),
)

BOUNDS_AND_BYTES = (
    Guard(
        "A round opens although too many dead letters wait for a publication.",
        "native/ring/ingest_end.cpp",
        " && !dead_letters_.full(); };",
        "test_a_flood_goes_out_in_bounded_publications",
        "; };",
    ),
    Guard(
        "A predictor gathers answers of any size.",
        "native/predict/request_scorer.cpp",
        "i < count && (i == 0 || has_room())",
        "test_answers_are_written_in_parts_of_bounded_size",
        "i < count",
    ),
    never(
        "A manifest imports a Python module.",
        "streamtrain/job/named_network.py",
        "not imports",
        "test_a_manifest_imports_nothing_nor_a_job_file_that_may_not",
    ),
    Guard(
        "A manifest opens a file.",
        "streamtrain/job/documents.py",
        "    if folder is None:\n",
        "columns/test_schema_frames.py::test_the_schema_stands_beside_the_job_file_and_its_text_in_the_settings",
        "    if folder is not None and False:\n",
    ),
    Guard(
        "A length in an Avro record reads past its end.",
        "native/decode/avro_bytes.h",
        "if (size > left(p)) [[unlikely]]",
        "test_avro.py::test_every_type_against_the_slow_meaning",
        "if (size > left(p) + 1) [[unlikely]]",
    ),
    Guard(
        "A JSON record nests as deep as it likes.",
        "native/decode/formats/json.h",
        "        ++depth_;\n",
        "test_nesting_is_counted_from_the_row",
    ),
    Guard(
        "A malformed manifest ends everybody who follows.",
        "streamtrain/kafka/follower.py",
        "        except Exception as error:  # of what is malformed",
        "test_versions_that_wait_together_are_checked_before_they_pass_over_others",
        "        except StreamtrainError as error:  # of what is malformed",
    ),
)

GUARDS = (
    *EXACTLY_ONCE, *CONSERVATION, *WHOLE_SNAPSHOTS, *LINEAGE, *FINITE,
    *ZOMBIES, *LOST_WORKERS, *BOUNDS_AND_BYTES,
)  # fmt: skip

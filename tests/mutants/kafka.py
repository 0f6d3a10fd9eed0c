"""The guards of what is read from and written to Kafka."""

from __future__ import annotations

FORGOTTEN = "tests/regress/test_0303_forgotten_transactions.py"
LOST = "tests/regress/test_0142_answers_lost.py"
NOT_FETCHED = (
    "tests/regress/test_0302_one_failure_ends_no_thread.py::"
    "test_a_snapshot_that_could_not_be_fetched_is_asked_for_again"
)
REFUSED = "tests/regress/test_0320_a_refused_version_counts_for_nothing.py"
SETTLING = "tests/kafka/test_settling.py::test_a_broker_that_takes_up_its_partitions_is_waited_for"

GUARDS = [
    (
        "what may have been committed is not published again",
        "streamtrain/kafka/transaction.py",
        "                if newest is not None and newest.digest == batch.digest:\n"
        "                    return newest.offset\n"
        "                self._check_kept(None if newest is None else newest.digest)\n",
        "",
        f"{LOST}::test_a_commit_whose_answer_is_lost_is_not_made_twice",
    ),
    (
        "the look for a committed batch",
        "streamtrain/kafka/transaction.py",
        "                if newest is not None and newest.digest == batch.digest:\n",
        "                if False:\n",
        f"{LOST}::test_a_commit_whose_answer_is_lost_is_not_made_twice",
    ),
    (
        "a trainer does not wait for more open files",
        "streamtrain/kafka/transaction.py",
        "            except TooManyOpenFiles:\n                raise\n",
        "",
        "tests/kafka/test_transaction.py::test_nobody_waits_where_no_more_files_may_be_opened[read]",
    ),
    (
        "a start does not wait for more open files",
        "streamtrain/kafka/transaction.py",
        " or isinstance(explained, TooManyOpenFiles):\n",
        ":\n",
        "tests/kafka/test_transaction.py::test_nobody_waits_where_no_more_files_may_be_opened[init_transactions]",
    ),
    (
        "what Kafka has forgotten to end is aborted",
        "streamtrain/kafka/transaction.py",
        "        while forgotten := self.answered(self._held.unfinished):\n",
        "        while forgotten := ():\n",
        f"{FORGOTTEN}::test_what_kafka_has_forgotten_never_becomes_visible",
    ),
    (
        "a run whose entry Kafka has forgotten leaves",
        "streamtrain/kafka/transaction.py",
        "        if holder is None or holder.run != self.run:\n",
        "        if False:\n",
        f"{FORGOTTEN}::test_a_run_leaves_whose_past_kafka_has_forgotten",
    ),
    (
        "a run whose last publication Kafka has forgotten leaves",
        "streamtrain/kafka/transaction.py",
        "        if newest != self._newest:\n",
        "        if False:\n",
        f"{FORGOTTEN}::test_a_run_leaves_whose_past_kafka_has_forgotten",
    ),
    (
        "a client that sees no leader any more is made anew",
        "streamtrain/kafka/renewing.py",
        "        except KafkaUnreachable:  # also",
        '        except __import__("streamtrain.errors").errors.KafkaSettling:\n            raise\n'
        "        except KafkaUnreachable:  # also",
        f"{LOST}::test_a_client_that_goes_deaf_after_a_lost_answer_is_made_anew",
    ),
    (
        "nothing read from a topic of another id is committed",
        "streamtrain/kafka/transaction.py",
        "            batch.check()\n",
        "            pass\n",
        "tests/e2e/test_gaps.py::test_a_records_topic_made_again_while_training_stops_the_run",
    ),
    (
        "a deaf client is made anew",
        "streamtrain/kafka/renewing.py",
        "            if self._silences >= _SILENCES and time.monotonic() - self._last_answer_s >= _DEAF_S:\n",
        "            if False:\n",
        f"{LOST}::test_a_client_that_goes_deaf_after_a_lost_answer_is_made_anew",
    ),
    (
        "a settling broker says nothing of what is there",
        "streamtrain/kafka/snapshots.py",
        "                if controller.absent(self.name):\n",
        "                if True:\n",
        SETTLING,
    ),
    (
        "an end before the end is none",
        "streamtrain/kafka/snapshots.py",
        "            if isinstance(read, End):\n                if read.offset >= end:\n                    return\n",
        "            if isinstance(read, End):\n                return\n",
        "tests/kafka/test_settling.py::test_an_end_before_the_end_is_no_end",
    ),
    (
        "an equal version is not newer",
        "streamtrain/kafka/follower.py",
        "        if waiting.version <= self._version:\n",
        "        if waiting.version < self._version:\n",
        "tests/regress/test_0145_equal_version.py::test_an_equal_version_is_left_out",
    ),
    (
        "the newest manifest is what control names",
        "streamtrain/run/job_topics.py",
        "    if last is None or (newest is not None and newest.digest == last.digest):\n",
        "    if True:\n",
        "tests/e2e/test_newest.py::test_a_snapshots_topic_that_lost_everything_is_refused_and_fresh_goes_on_above",
    ),
    (
        "a new lineage goes on above what control names",
        "streamtrain/run/roles/coordinator.py",
        ".above(last.version if last else 0), start)\n",
        ", start)\n",
        "tests/e2e/test_newest.py::test_a_snapshots_topic_that_lost_everything_is_refused_and_fresh_goes_on_above",
    ),
    (
        "runs count on from the manifest",
        "streamtrain/kafka/transaction.py",
        "            run = Run(max(seen.run.number if seen else 0, published) + 1, run_id)\n",
        "            run = Run((seen.run.number if seen else 0) + 1, run_id)\n",
        "tests/e2e/test_newest.py::test_runs_count_on_from_the_manifest_where_control_was_lost",
    ),
    (
        "a replaced run leaves",
        "streamtrain/run/roles/coordinator.py",
        "        if self._watch.replaced_by is not None:\n",
        "        if False:\n",
        "tests/regress/test_0143_patience.py::test_a_replaced_trainer_leaves_though_no_row_comes",
    ),
    (
        "only a command's first run gives up on Kafka",
        "streamtrain/run/train.py",
        "        if 1 <= code <= 4 and not given_up:\n",
        "        if 1 <= code <= 4:\n",
        "tests/regress/test_0143_patience.py::test_a_run_after_the_first_waits_for_a_broker",
    ),
    (
        "a drain ends",
        "streamtrain/run/train.py",
        "            if drained_s is not None and time.monotonic() - drained_s > _DRAIN_S:\n",
        "            if False:\n",
        "tests/regress/test_0143_patience.py::test_a_drain_without_a_broker_ends",
    ),
    (
        "what is heard beside a time-out",
        "streamtrain/kafka/errors.py",
        "    if response <= Response.MISSING and heard is not None and response_to(heard.code) is Response.DENIED:\n",
        "    if False:\n",
        "tests/kafka/test_errors.py::test_a_time_out_after_a_refused_password_is_a_refused_password",
    ),
    (
        "no thread is begun at the interpreter's end",
        "streamtrain/kafka/renewing.py",
        "    if sys.is_finalizing():\n",
        "    if False:\n",
        "tests/regress/test_0300_programs_end.py::test_it_ends[a follower]",
    ),
    (
        "group offsets not taken are committed again",
        "streamtrain/run/late_offsets.py",
        "                        self._newest = offsets\n",
        "                        pass\n",
        "tests/regress/test_0142_answers_lost.py::test_group_offsets_follow_the_publications",
    ),
    (
        "a stop between two runs is a stop",
        "streamtrain/run/train.py",
        "                if self._stop.comes_within(pause_s):\n",
        "                if False:\n",
        "tests/run/test_back_off.py::test_a_stop_between_two_runs_is_a_stop",
    ),
    (
        "a node alone keeps its partitions",
        "streamtrain/broker/node.py",
        '"5000" if count > 1 else "30000"',
        '"5000"',
        "tests/broker/test_crash.py::test_a_node_alone_that_slept_leads_on",
    ),
    (
        "a watch that failed looks again",
        "streamtrain/run/watch.py",
        "            except StreamtrainError as error:  # what is no entry, too: the next may be one\n",
        "            except KafkaUnreachable as error:\n",
        "tests/regress/test_0302_one_failure_ends_no_thread.py::test_a_watch_looks_again",
    ),
    (
        "a snapshot not fetched is asked for again",
        "streamtrain/kafka/follower.py",
        "                self._again_s = time.monotonic() + _AGAIN_S\n",
        "                del self._waiting[at]\n",
        f"{NOT_FETCHED}[the last-True]",
    ),
    (
        "a snapshot not fetched comes before those after it",
        "streamtrain/kafka/follower.py",
        "        self._waiting.append(_Waiting(located, chunks))\n",
        "        self._waiting = [_Waiting(located, chunks)]\n",
        f"{NOT_FETCHED}[two follow-False]",
    ),
    (
        "a refused version counts for nothing",
        "streamtrain/kafka/follower.py",
        "                del self._waiting[at]\n",
        "                del self._waiting[at]\n                self._version = waiting.version\n",
        f"{REFUSED}::test_a_live_model_goes_on[malformed]",
    ),
    (
        "what is refused passes over nothing",
        "streamtrain/kafka/follower.py",
        "                del self._waiting[at]\n",
        "                del self._waiting[: at + 1]\n",
        f"{REFUSED}::test_versions_that_wait_together_are_judged_before_they_pass_over_others[versions1]",
    ),
    (
        "however a snapshot is bad, it ends nobody who follows",
        "streamtrain/kafka/follower.py",
        "        except Exception as error:  # of what is malformed",
        "        except StreamtrainError as error:  # of what is malformed",
        f"{REFUSED}::test_versions_that_wait_together_are_judged_before_they_pass_over_others[versions0]",
    ),
    (
        "a refused version keeps nobody from starting",
        "streamtrain/kafka/follower.py",
        "self._topic.load(located, self._trainer, newer)",
        "self._topic.load(located, self._trainer)",
        f"{REFUSED}::test_it_keeps_nobody_from_starting_on_what_came_after_it[malformed]",
    ),
    (
        "a start does not go below a good one",
        "streamtrain/kafka/follower.py",
        "        for other in newer:\n",
        "        for other in newer[:0]:\n",
        f"{REFUSED}::test_a_good_one_of_a_higher_version_keeps_a_start_from_a_lower_one",
    ),
    (
        "arrays that are not the model's are refused",
        "streamtrain/clients/snapshots.py",
        "    payload.check(model, arrays)\n",
        "",
        f"{REFUSED}::test_whoever_follows_goes_on[True-another_models]",
    ),
    (
        "an end that is not reached is said",
        "streamtrain/kafka/reader.py",
        "        if time.monotonic() > until:\n",
        "        if False:\n",
        "tests/kafka/test_reader.py::test_an_end_that_is_not_reached_is_said",
    ),
    (
        "a start waits until a fencing is written",
        "streamtrain/broker/fencing.py",
        "time.monotonic() < until and not fenced(log, number):\n",
        "False:\n",
        "tests/broker/test_crash.py::test_a_start_waits_until_the_fencing_is_written",
    ),
    (
        "what is fenced already is not waited for",
        "streamtrain/broker/node.py",
        ' and not fenced(folder / "log", node.number):\n',
        ":\n",
        "tests/broker/test_crash.py::test_only_after_a_crash_the_controller_comes_first_and_once",
    ),
    (
        "what could not be made is absent",
        "streamtrain/kafka/admin.py",
        "                if error.args[0].code() in _NOT_TO_BE_MADE:\n",
        "                if False:\n",
        "tests/kafka/test_admin.py::test_what_could_not_be_made_is_absent",
    ),
    (
        "rows for a topic that is not there are refused",
        "streamtrain/cli/commands/produce.py",
        "    if session.admin(job).absent(name):\n",
        "    if False:\n",
        "tests/cli/test_topics_and_records.py::test_what_a_missing_topic_needs_is_said",
    ),
]

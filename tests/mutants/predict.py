"""Guards of the predictor: what it answers, what it takes from its topics, and that it goes on."""

_MALFORMED = "tests/regress/test_0220_malformed_manifests.py"
_WIRE = "tests/topics/test_predictions.py"
_REFUSED = "tests/regress/test_0311_a_predictor_refused.py"
_FOLLOWING = "tests/regress/test_0431_one_following.py"
_DEAF = "tests/regress/test_0312_a_deaf_reader.py::test_a_predictor_reads_on_with_another"
_AGAIN = "tests/regress/test_0310_requests_topic_made_again.py"
_HELD = "tests/run/test_held_scorers.py::test_"
_PAGES = "tests/columns/test_served_pages.py::test_"

GUARDS = [
    (
        "a bounded run does not wait for a good snapshot", "streamtrain/run/roles/predictor.py",
        "if self._config.until_end and self._served is None:", "if False:",
        f"{_MALFORMED}::test_a_bounded_run_without_a_model_ends_with_exit_code_1",
    ),
    (
        "a malformed schema or model is refused", "streamtrain/columns/served.py",
        "except Exception as error:  # of what", "except SnapshotError as error:  # of what",
        f"{_MALFORMED}::test_whatever_a_manifest_holds_it_makes_a_scorer_or_a_snapshot_error",
    ),
    (
        "columns and model agree", "streamtrain/columns/served.py", "!= value:", "is value:",
        f"{_MALFORMED}::test_columns_and_model_that_disagree_are_refused",
    ),
    (
        "filtered rows have their place in an answer", "native/decode/record_decoder.h",
        "            tally.add_filtered(row, writer_.failed_column());\n", "",
        f"{_WIRE}::test_a_row_that_a_plan_leaves_out_is_an_error_in_its_place",
    ),
    (
        "dead rows of one reason are of one column", "native/decode/decoder.h",
        "last.column == column && ", "", "tests/columns/test_formats.py::test_mutated",
    ),
    (
        "a request that cannot be read at all has one error", "native/predict/request_scorer.cpp",
        "    decoded.many &= !(first_dead && first_dead->remainder && first_dead->row_from == 0);\n", "",
        f"{_WIRE}::test_a_request_that_cannot_be_read_at_all_is_answered_with_an_error_alone",
    ),
    (
        "an answer names its request", "native/predict/answer_delivery.cpp",
        '        add_header(headers, "streamtrain-offset", offset);\n', "",
        "tests/run/test_predictor.py::test_answers_have_the_requests_key_headers_and_the_snapshots_names",
    ),
    (
        "a column's moments have their own row in the file", "streamtrain/columns/portable.py",
        '{"moments_row": row} if column', '{"moments_row": 0} if column',
        "tests/columns/test_portable.py::test_numpy_and_the_file_alone_predict_the_same",
    ),
    (
        "a category's own hash stands in the file", "streamtrain/columns/portable.py",
        "hash_seed(category.name)", "0",
        "tests/columns/test_portable.py::test_numpy_and_the_file_alone_predict_the_same",
    ),
    (
        "answers are written in parts", "native/predict/request_scorer.cpp",
        "i < count && (i == 0 || has_room())", "i < count",
        "tests/run/test_predictor_topics.py::test_answers_are_written_in_parts_of_bounded_size",
    ),
    (
        "a part is not the whole batch", "native/predict/predictor.cpp",
        "first < requests_.size());\n    return true;", "false);\n    return true;",
        "tests/run/test_predictor_topics.py::test_empty_and_huge_requests_are_answered_in_bounded_memory",
    ),
    (
        "metrics are for this machine alone", "streamtrain/telemetry/server.py",
        'host: str = "127.0.0.1"', 'host: str = ""',
        "tests/test_telemetry.py::test_only_this_machine_is_answered_unless_asked_for",
    ),
    (
        "offsets of a topic deleted before are none", "native/kafka/consumer.cpp",
        "        if (!of.empty() && !identity_.empty() && of != identity_) part.offset = rd::invalid;\n", "",
        "tests/run/test_predictor_topics.py::test_offsets_of_a_topic_deleted_before_count_for_nothing",
    ),
    (
        "answers are committed for the topic that was read", "native/predict/deliver_exactly_once.cpp",
        "        if (asked.answer(timeout_ms) == id) return {};\n", "        return {};\n",
        f"{_AGAIN}::test_its_requests_are_answered_exactly_once[120]",
    ),
    (
        "a topic made again has a consumer of its own", "native/predict/predictor.cpp",
        "    must_renew_ |= id != consumer_->identity();\n",
        "    must_rewind_ |= id != consumer_->identity();\n    consumer_->set_identity(std::move(id));\n",
        f"{_AGAIN}::test_answers_that_come_late_pass_over_no_request_of_the_next_topic",
    ),
    (
        "what Kafka refuses ends a predictor", "native/predict/predictor.cpp",
        "if (failure.code == rd::inconsistent || response_to(failure.code) >= Response::refuse) throw;",
        "if (failure.code == rd::inconsistent) throw;",
        f"{_REFUSED}::test_a_missing_right_ends_it[before-exactly_once-id]",
    ),
    (
        "answers that Kafka refuses are not sent again", "native/predict/answer_delivery.cpp",
        "    if (response_to(code) >= Response::refuse) throw KafkaFailure(code, topic_ + \": \" + text);\n", "",
        f"{_REFUSED}::test_a_missing_right_ends_it[before-at_least_once-predictions]",
    ),
    (
        "requests that Kafka refuses are not read on", "native/predict/predictor.cpp",
        "            if (view.error == rd::fatal || response_to(view.error) >= Response::refuse)\n",
        "            if (view.error == rd::fatal)\n",
        f"{_REFUSED}::test_a_missing_right_ends_it[while-at_least_once-requests]",
    ),
    (
        "who is not let in any more does not wait", "streamtrain/run/predictor_events.py",
        "isinstance(error, KafkaDenied | TooManyOpenFiles):", "isinstance(error, TooManyOpenFiles):",
        f"{_REFUSED}::test_a_password_that_holds_no_more_ends_it[exactly_once]",
    ),
    (
        "a bounded run does not go on in another topic", "native/predict/predictor.cpp",
        "        if (id != bound_to_) throw KafkaFailure(rd::inconsistent,",
        "        if (false) throw KafkaFailure(rd::inconsistent,",
        f"{_REFUSED}::test_a_bounded_run_ends_when_its_requests_are_deleted[True]",
    ),
    (
        "a bounded run does not wait for a topic that is gone", "streamtrain/run/predictor_events.py",
        "                if admin.absent(topic):\n", "                if False:\n",
        f"{_REFUSED}::test_a_bounded_run_ends_where_there_are_no_predictions[exactly_once]",
    ),
    (
        "what is tried again is said seldom", "streamtrain/run/roles/predictor.py",
        "            retries.warning(", "            log.warning(",
        f"{_REFUSED}::test_what_is_tried_again_is_said_again_seldom",
    ),
    (
        "a consumer without answers is replaced", "native/predict/predictor.cpp",
        "failure.code == rd::timed_out && ++silences_", "false && ++silences_",
        f"{_DEAF}[at_least_once-DescribeTopics=2*]",
    ),
    (
        "a consumer that hears nothing is replaced", "native/predict/predictor.cpp",
        "    if (!consumer_->is_deaf(query_ms)) return;\n", "    if (true) return;\n",
        f"{_DEAF}[exactly_once-consume_batch_queue=150*]",
    ),
    (
        "a producer without answers is replaced", "native/predict/deliver_exactly_once.cpp",
        "failure.code != rd::timed_out, false", "true, false", f"{_DEAF}[exactly_once-DescribeTopics=5*]",
    ),
    (
        "a predictor keeps its model and follows on", "streamtrain/run/roles/predictor.py",
        "        if not isinstance(error, StreamtrainError) or not passing or self._config.snapshot is not None:\n",
        "        if True:\n",
        "tests/regress/test_0302_one_failure_ends_no_thread.py::test_a_predictor_keeps_its_model_and_follows_on",
    ),
    (
        "a predictor without a model waits for a broker that is settling", "streamtrain/run/roles/predictor.py",
        "isinstance(error, KafkaBroken | KafkaSettling)", "isinstance(error, KafkaBroken)",
        f"{_FOLLOWING}::test_a_predictor_without_a_model_waits_for_what_passes",
    ),
    (
        "a broken client of the snapshots is made anew", "streamtrain/kafka/following.py",
        "                    if isinstance(error, KafkaBroken):\n", "                    if False:\n",
        f"{_FOLLOWING}::test_a_live_model_follows_on_and_a_broken_client_is_made_anew",
    ),
    (
        "a snapshot followed anew is made ready once", "streamtrain/kafka/following.py",
        "        self._after = made[0]\n", "",
        f"{_FOLLOWING}::test_what_was_given_is_not_given_again",
    ),
    (
        "a snapshot of another shape is not put into the one before", "streamtrain/columns/served.py",
        "        if before is not None and not before.shape.fits(manifest):\n", "        if False:\n",
        "tests/clients/test_scorer.py::test_snapshots_of_one_shape_share_it_and_none_is_put_into_another",
    ),
    (
        "parameters live as long as a scorer of them", "compute/model.py",
        "        plan._held = (held, program)\n", "        plan._held = program\n",
        "tests/columns/test_served.py::test_parameters_belong_to_all_who_refer_to_them",
    ),
    (
        "a batch is zero behind its rows", "native/decode/batch_filler.cpp",
        "    plan_->clear_behind(sink_.slot, sink_.rows);\n", "",
        "tests/columns/test_plan.py::test_dicts_are_what_their_json_is",
    ),
    (
        "counting rows ends with the most that are wanted", "native/decode/batch_filler.cpp",
        "        most -= i64{sink_.rows} - before;\n", "",
        "tests/regress/test_0432_counted_rows.py::test_no_more_than_are_wanted",
    ),
    (
        "counting rows goes on where a batch is full", "native/decode/batch_filler.cpp",
        "        if (full()) sink_.rows = 0, full_ = false;\n", "        if (full()) break;\n",
        "tests/regress/test_0432_counted_rows.py::test_all_rows_of_records_larger_than_a_batch",
    ),
    (
        "answers stand beside rows left out", "native/bindings/row_scorer.cpp",
        "            take_until(row);\n", "",
        "tests/regress/test_0430_rows_left_out_keep_their_place.py::test_rows_left_out",
    ),
    (
        "a follower waits for a broker that is settling", "streamtrain/kafka/follower.py",
        "        except KafkaSettling as error:  # nobody leads the topic yet\n",
        "        except MemoryError as error:\n",
        "tests/regress/test_0302_one_failure_ends_no_thread.py::test_a_broker_that_is_settling_is_waited_for",
    ),
    (
        "equal pages are not written", "native/state/changed.h",
        "if (std::memcmp(to + at, from + at, count) != 0) {", "{",
        f"{_PAGES}a_few_rows_changed_are_all_that_the_second_holds",
    ),
    (
        "a state that differs much is a base", "compute/pages.py",
        "        return state if left >= 0 else None\n", "        return state\n",
        f"{_PAGES}one_that_differs_much_begins_anew_and_nothing_stays_open",
    ),
    (
        "a base is sealed", "compute/pages.py",
        "        fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, _SEALS)\n", "",
        f"{_PAGES}nobody_writes_what_predicts",
    ),
    (
        "a live model hands on what it holds", "streamtrain/clients/live_model.py",
        "stored.model, before, self._network)", "stored.model, None, self._network)",
        f"{_PAGES}a_live_model_shares_with_the_one_before",
    ),
    (
        "of several scorers the first left ends what is answered", "native/predict/held_scorers.cpp",
        " || share.places[answered] >= first_left", "",
        f"{_HELD}what_one_has_no_room_for_is_answered_after_all_before_it",
    ),
    (
        "of several scorers one waits", "native/predict/held_scorers.cpp",
        "        waits_ = scorer.waits();\n", "",
        f"{_HELD}what_waits_for_a_schema_holds_its_partition_alone",
    ),
    (
        "a request is answered by the scorer it names", "native/predict/held_scorers.cpp",
        "    if (!named.value) return shares_.front();\n", "    return shares_.front();\n",
        f"{_HELD}each_request_is_answered_by_the_one_it_names",
    ),
]  # fmt: skip

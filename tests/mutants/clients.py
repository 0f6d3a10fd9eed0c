"""Guards of what other programs import."""

GUARDS = [
    (
        "librdkafka's repeats are held back in the library",
        "streamtrain/log.py",
        "    logger.addFilter(Repeats())\n",
        "",
        "tests/regress/test_0191_librdkafka_repeats_itself.py::test_hundreds_of_lost_connections_are_a_few_lines",
    ),
    (
        "a live model's name is checked at the door",
        "streamtrain/clients/live_model.py",
        'self.job = job_name("LiveModel", job)',
        "self.job = job",
        "tests/clients/test_live_model.py::test_arguments_are_checked_at_the_door",
    ),
    (
        "wait_ready without an answer from Kafka is KafkaUnreachable",
        "streamtrain/clients/live_model.py",
        "        if waited and not self._connected:",
        "        if waited and not self._connected and False:",
        "tests/clients/test_live_model.py::test_no_broker_is_said_and_waited_for",
    ),
    (
        "a workspace serves one thread at a time",
        "streamtrain/clients/scorer.py",
        "            return pool.pop()\n",
        "            return pool[0]\n",
        "tests/clients/test_scorer.py::test_many_threads_predict_at_once_and_each_gets_its_own_rows_answers",
    ),
]

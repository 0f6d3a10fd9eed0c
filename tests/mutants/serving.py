"""Guards of the server of predictions: what it takes, whom it lets in, and what it says."""

_BODIES = "tests/serving/test_bodies.py"
_TENSORS = "tests/serving/test_tensors.py"
_SERVE = "tests/serving/test_serve.py"
_SLOW = f"{_SERVE}::test_slow_and_half_open_clients"
_LARGE = f"{_SERVE}::test_bodies_of_100_mb"
_TOKEN = f"{_SERVE}::test_a_token_is_asked_for"
_DRAIN = f"{_SERVE}::test_sigterm_answers_what_runs_and_a_second_one_does_not"

GUARDS = [
    (
        "a body broken somewhere is refused as a whole", "native/predict/body_scorer.cpp",
        "if (end != dead.end()) {", "if (false) {", f"{_BODIES}::test_any_bytes_are_answered",
    ),
    (
        "an answer to a body is bounded", "native/predict/body_scorer.cpp",
        "if (text_.size() > most_bytes_) return", "if (false) return",
        f"{_BODIES}::test_an_answer_that_is_too_large_is_refused",
    ),
    (
        "a body's prediction is finite", "native/predict/body_scorer.cpp",
        "if (!is_finite(output, writer_.width())) {", "if (false) {",
        f"{_BODIES}::test_predictions_that_are_not_finite_are_errors",
    ),
    (
        "a body has no message around it", "streamtrain/columns/served.py",
        "bare = self.schema.without_message()", "bare = self.schema",
        f"{_BODIES}::test_what_stands_around_a_record_is_a_field_of_a_body",
    ),
    (
        "one bad row is no success", "streamtrain/serving/predicting.py", "code = 422 if", "code = 200 if",
        f"{_BODIES}::test_a_reply_says_whose_it_is",
    ),
    (
        "bytes of a tensor are aligned", "streamtrain/serving/tensors.py",
        "np.frombuffer(raw, dtype).copy()", "np.frombuffer(raw, dtype)",
        f"{_TENSORS}::test_every_datatype_is_read_from_json_and_from_bytes",
    ),
    (
        "an element of BYTES ends in its tensor", "streamtrain/serving/tensors.py",
        "if len(found) != count or at != end:", "if len(found) != count:",
        f"{_TENSORS}::test_texts_that_do_not_fill_their_bytes_are_refused",
    ),
    (
        "numbers of a tensor are no texts", "streamtrain/serving/tensors.py", "    if wrong:\n", "    if False:\n",
        f"{_TENSORS}::test_what_is_no_tensor_is_said",
    ),
    (
        "tensors have one length", "streamtrain/serving/inferring.py", "if tensor.rows != first.rows:", "if False:",
        f"{_TENSORS}::test_what_does_not_fit_the_job_is_said",
    ),
    (
        "only the loaded version answers", "streamtrain/serving/door.py",
        "if version and version != str(scorer.version):", "if False:", f"{_SERVE}::test_tritons_client",
    ),
    (
        "a body that comes in parts is bounded", "streamtrain/serving/body.py",
        "if held.bytes > self._limits.most_bytes:", "if False:", _LARGE,
    ),
    (
        "a body said to be too large is not read", "streamtrain/serving/body.py",
        "if told is not None and int(told) > self._limits.most_bytes:", "if False:",
        f"{_SERVE}::test_a_body_is_refused_by_its_head_alone",
    ),
    (
        "a refused client can read why", "streamtrain/serving/door.py",
        "        await _discard(receive)\n", "",
        f"{_SERVE}::test_a_client_that_sends_all_before_it_reads_is_told_why",
    ),
    (
        "requests at once are bounded", "streamtrain/serving/body.py",
        "if self._requests >= self._limits.most_requests:", "if False:", _SLOW,
    ),
    (
        "a body has its time", "streamtrain/serving/body.py", "asyncio.timeout(BODY_S)", "asyncio.timeout(None)", _SLOW,
    ),
    (
        "a head has its time", "streamtrain/serving/server.py", "now_s - self.waits_since_s > HEAD_S", "False",
        "tests/serving/test_connections.py::test_a_head_has_its_time_and_an_idle_connection_none_of_it",
    ),
    (
        "a head is bounded", "streamtrain/serving/server.py", "if self._head_bytes > HEAD_BYTES:", "if False:", _SLOW,
    ),
    (
        "a token is compared", "streamtrain/serving/door.py",
        'if not hmac.compare_digest(header(scope, b"authorization") or b"", self._expected):', "if False:", _TOKEN,
    ),
    (
        "what runs is answered at the end", "streamtrain/cli/commands/serve.py",
        "        self._server.should_exit = True\n", "        self._server.should_exit = _at_once()\n", _DRAIN,
    ),
    (
        "a second signal ends it at once", "streamtrain/cli/commands/serve.py", "if self._server.should_exit:",
        "if False:", _DRAIN,
    ),
    (
        "an answer nobody takes is let go", "streamtrain/serving/server.py",
        "now_s - self._stalled_since_s > STALLED_S", "False",
        "tests/serving/test_connections.py::test_an_answer_that_nobody_takes_is_let_go",
    ),
]

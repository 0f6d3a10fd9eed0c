"""What Kafka has forgotten to end, or that it has done."""

from __future__ import annotations

FORGOTTEN = "tests/regress/test_0303_forgotten_transactions.py"

GUARDS = [
    (
        "what Kafka has forgotten to end is aborted",
        "streamtrain/kafka/transaction.py",
        "        while forgotten := [each for each in self.answered(self._held.unfinished) if each not in ended]:\n",
        "        while forgotten := ():\n",
        f"{FORGOTTEN}::test_what_kafka_has_forgotten_never_becomes_visible",
    ),
    (
        "dead letters alone may be what Kafka has forgotten to end",
        "streamtrain/run/held_job.py",
        "if topic.written is not None",
        'if topic.written == "alone"',
        f"{FORGOTTEN}::test_an_open_transaction_among_dead_letters_is_ended_if_it_is_ours_and_not_waited_for",
    ),
    (
        "what others have open among dead letters is not waited for",
        "streamtrain/kafka/transaction.py",
        "            ended |= {each for each in forgotten if each.shared}\n",
        "",
        f"{FORGOTTEN}::test_an_open_transaction_among_dead_letters_is_ended_if_it_is_ours_and_not_waited_for",
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
]

"""Forgeries of control, dead letters, predictions and records."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.kafka.clients import Message
from streamtrain.topics.predictions import DIGEST_HEADER, OFFSET_HEADER, VERSION_HEADER
from tests.checks.verify.forgery_table import forgery, messages
from tests.checks.verify.topics_in_memory import Written

# -- control -------------------------------------------------------------------------------------------------------


def drop_key(written: Written, wanted: Callable[[bytes], bool]) -> None:
    partition = written.partitions["control"][0]
    partition.messages = [message for message in partition.messages if not wanted(message.key or b"")]


@forgery
def control_is_empty(written: Written) -> None:
    drop_key(written, lambda key: True)


@forgery
def a_run_is_missing_in_control(written: Written) -> None:
    drop_key(written, lambda key: key == b"run/2")


@forgery
def control_names_no_newest(written: Written) -> None:
    drop_key(written, lambda key: key == b"newest")


@forgery
def garbage_in_control(written: Written) -> None:
    written.append("control", b"\xc1garbage", b"run/2")


# -- dead letters --------------------------------------------------------------------------------------------------


@forgery
def a_dead_letter_is_missing(written: Written) -> None:
    del messages(written, "dead_letters")[5]


@forgery
def the_letter_of_a_batch_left_out_is_missing(written: Written) -> None:
    found = messages(written, "dead_letters")
    del found[next(at for at, each in enumerate(found) if "streamtrain-until" in dict(each.headers))]


@forgery
def a_dead_letter_is_there_twice(written: Written) -> None:
    again = messages(written, "dead_letters")[5]
    written.append("dead_letters", again.value, again.key, again.headers)


def headed(message: Message, **changes: bytes) -> Message:
    headers = [(name, changes.get(name.removeprefix("streamtrain-"), value)) for name, value in message.headers]
    return message._replace(headers=headers)


@forgery
def a_dead_letter_of_an_unknown_run(written: Written) -> None:
    found = messages(written, "dead_letters")
    found[5] = headed(found[5], run=b"77")


@forgery
def a_dead_letter_of_a_round_never_published(written: Written) -> None:
    found = messages(written, "dead_letters")
    found[5] = headed(found[5], round=b"7777")


def _letter(written: Written) -> int:
    """One of the newest in partition 0, whose records are all there."""
    found = messages(written, "dead_letters")
    return next(
        at for at in reversed(range(len(found)))
        if found[at].value is not None and dict(found[at].headers)["streamtrain-partition"] == b"0"
        and not any(dict(found[at].headers)["streamtrain-rows"].startswith(b"[[%d" % row) for row in range(1, 9))
    )  # fmt: skip


@forgery
def two_dead_letters_have_changed_their_values(written: Written) -> None:
    found = messages(written, "dead_letters")
    one = _letter(written)
    other = next(at for at in reversed(range(one)) if found[at].value not in (None, found[one].value))
    size = {at: b"%d" % len(found[at].value or b"") for at in (one, other)}
    values = found[one].value, found[other].value
    found[one] = headed(found[one]._replace(value=values[1]), bytes=size[other])
    found[other] = headed(found[other]._replace(value=values[0]), bytes=size[one])


@forgery
def a_dead_letter_names_another_offset(written: Written) -> None:
    found = messages(written, "dead_letters")
    at = _letter(written)
    offset = int(dict(found[at].headers)["streamtrain-offset"] or b"")
    found[at] = headed(found[at], offset=b"%d" % (offset + 1))


@forgery
def a_dead_letter_tells_another_reason(written: Written) -> None:
    found = messages(written, "dead_letters")
    at = _letter(written)
    headers = dict(found[at].headers)
    was = headers["streamtrain-reason"] or b""
    rows = (headers["streamtrain-rows"] or b"").replace(was, b"another reason")
    found[at] = headed(found[at], reason=b"another reason", rows=rows)


@forgery
def garbage_in_the_dead_letters(written: Written) -> None:
    written.append("dead_letters", b"garbage", b"k", [("streamtrain-wire", b"1")])


# -- predictions ---------------------------------------------------------------------------------------------------


@forgery
def a_prediction_is_committed_twice(written: Written) -> None:
    again = messages(written, "predictions")[2]
    written.append("predictions", again.value, again.key, again.headers)


@forgery
def a_request_was_never_answered(written: Written) -> None:
    del messages(written, "predictions")[1]


@forgery
def a_prediction_of_version_abc(written: Written) -> None:
    found = messages(written, "predictions")
    found[2] = found[2]._replace(headers=[(n, b"abc" if n == VERSION_HEADER else v) for n, v in found[2].headers])


@forgery
def a_prediction_of_a_version_to_come(written: Written) -> None:
    found = messages(written, "predictions")
    found[2] = found[2]._replace(headers=[(n, b"99" if n == VERSION_HEADER else v) for n, v in found[2].headers])


@forgery
def a_prediction_with_another_snapshots_digest(written: Written) -> None:
    found = messages(written, "predictions")
    other = dict(found[-1].headers)[DIGEST_HEADER]
    found[2] = found[2]._replace(headers=[(n, other if n == DIGEST_HEADER else v) for n, v in found[2].headers])


@forgery
def a_prediction_of_a_request_that_is_not_there(written: Written) -> None:
    found = messages(written, "predictions")
    found[2] = found[2]._replace(headers=[(n, b"5000" if n == OFFSET_HEADER else v) for n, v in found[2].headers])


@forgery
def garbage_in_the_predictions(written: Written) -> None:
    written.append("predictions", b"{", b"k")


@forgery
def a_prediction_without_headers(written: Written) -> None:
    found = messages(written, "predictions")
    found[2] = found[2]._replace(headers=[])


# -- records -------------------------------------------------------------------------------------------------------


@forgery
def a_record_lies_in_a_hole(written: Written) -> None:
    partition = written.partitions["records"][0]
    taken = {message.offset for message in partition.messages}
    hole = next(offset for offset in range(partition.messages[0].offset, partition.end) if offset not in taken)
    at = next(index for index, message in enumerate(partition.messages) if message.offset > hole)
    partition.messages.insert(at, partition.messages[0]._replace(offset=hole))


@forgery
def a_record_is_missing(written: Written) -> None:
    found = messages(written, "records")
    del found[-4]


@forgery
def a_record_has_become_another(written: Written) -> None:
    found = messages(written, "records")
    many = next(at for at, each in enumerate(found) if each.value is not None and each.value[0] & 0xF0 == 0x90)
    found[many] = found[many]._replace(value=found[0].value)

"""POST /predict/{job}: rows in JSON, answered natively, all by one snapshot."""

from __future__ import annotations

import time

from streamtrain._native import BodyForm
from streamtrain.serving.reply import Reply
from streamtrain.serving.served_model import BodyAnswer, HttpScorer

_CODES = {BodyForm.ROW: 200, BodyForm.ROWS: 200, BodyForm.BROKEN: 400, BodyForm.TOO_LARGE: 413}


def predicted(scorer: HttpScorer, body: bytes, released: bool) -> Reply:
    """`{"prediction": …, "version": …}` of one row, `{"predictions": [{"prediction": …}, …], "version": …}` of many.

    One bad row is 422, and a body that cannot be decoded 400, each `{"error": {path, reason, where}}`; among many rows
    a bad one has such an error in its place. Bodies of other servers' clients: see envelope.py.
    """
    answer = scorer.answer_body(body, released)
    age_s = max(0.0, time.time() - scorer.created_ms / 1000)
    code = 422 if answer.form is BodyForm.ROW and answer.errors else _CODES[answer.form]
    text = _with_lineage(answer, f"{scorer.lineage}{age_s:.3f}}}".encode())
    return Reply(code, text, rows=answer.rows, errors=answer.errors, version=scorer.version)


def _with_lineage(answer: BodyAnswer, lineage: bytes) -> bytes:
    if answer.form is BodyForm.ROWS:
        return b'{"predictions":%b,%b' % (answer.text, lineage)
    return b"%b,%b" % (answer.text[:-1], lineage)

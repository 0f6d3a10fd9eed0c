"""A module that a program holds, on its way to the workers the program starts, through the pipes it started them with,
or in a Fitted that the program pickles.

This is the one place where Python objects are made of bytes, and the bytes come from nowhere else.
"""

from __future__ import annotations

import base64
from typing import Any

from streamtrain.errors import UserMistake


def packed(module: Any) -> str:
    """A module, or what makes one, as text; classes of a program's main file are in it too."""
    try:
        import cloudpickle
    except ImportError as error:
        raise UserMistake(
            f"a module that is given goes to the workers through cloudpickle, which cannot be imported ({error}); "
            "install it, as the extra does: pip install 'streamtrain[torch]'"
        ) from None
    try:
        return base64.b64encode(cloudpickle.dumps(module)).decode()
    except Exception as error:  # whatever is not made to be handed on
        raise UserMistake(f"the module cannot be handed to the workers: {type(error).__name__}: {error}") from error


def unpacked(text: str) -> Any:
    """Returns what `packed` packed, in a process that the same program has started."""
    import cloudpickle

    try:
        return cloudpickle.loads(base64.b64decode(text))
    except Exception as error:  # whatever its import raises here
        raise UserMistake(f"the module cannot be had in a worker: {type(error).__name__}: {error}") from error

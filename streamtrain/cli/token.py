"""The token of a command that listens, and where it needs one: STREAMTRAIN_TOKEN, or a file."""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated

import typer

from streamtrain.errors import UserMistake

TOKEN = "STREAMTRAIN_TOKEN"
_LEAST = 8
_FORM = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what Authorization: Bearer may carry (RFC 6750, 2.1)

TokenFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help=f"File with the token that clients must send; or {TOKEN}.", show_default=False),
]
HOST = f"Address to listen at; any but this machine's own needs a token ({TOKEN})."


def token_for(host: str, path: Path | None) -> str:
    """Returns the token of the file, else of the environment; "" if there is none. Raises UserMistake if it is no
    token, and if others can connect and there is none."""
    text, where = os.environ.get(TOKEN, ""), TOKEN
    if path is not None:
        where = f"--token-file {path}"
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserMistake(f"{where}: expected a file that holds a token, got {error}") from None
    token = text.strip()
    if (token or path is not None) and (len(token) < _LEAST or not _FORM.fullmatch(token)):
        form = f"{_LEAST} or more letters, digits and - . _ ~ + /, with = at its end or not"
        raise UserMistake(f"{where}: expected a token of {form}")
    if not token and not is_local(host):
        raise UserMistake(
            f"--host {host}: expected a token where others can connect, got none; give --token-file or {TOKEN}, for "
            "example of `openssl rand -hex 16`"
        )
    return token


def is_local(host: str) -> bool:
    """Returns whether only this machine can connect to it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

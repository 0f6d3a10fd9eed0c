"""Asks a listener which security.protocol it speaks: a connection that only breaks does not tell."""

from __future__ import annotations

import socket
import ssl
import struct
from contextlib import suppress

_TIMEOUT_S = 2.0
_SASL_HANDSHAKE = struct.pack(">hhih", 17, 1, 1, -1) + b"\0\1?"  # version 1, no client id, a mechanism that none has
_NO_SUCH_MECHANISM, _NO_SASL = 33, 34  # what a listener with and without SASL answers


def speaks_otherwise(bootstrap: str, protocol: str) -> str | None:
    """The security.protocol of the first address that takes a connection, where it is not `protocol`.

    None where it is, and where no address says.
    """
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition("://")[2].rpartition(":")
        with suppress(OSError, ValueError):
            has_tls, has_sasl = _probe((host.strip("[]"), int(port)))
            if has_sasl is None:  # a client without a certificate is not told
                has_sasl = protocol.startswith("SASL")
            spoken = ("SASL_" if has_sasl else "") + ("SSL" if has_tls else "PLAINTEXT")
            return None if spoken == protocol else spoken
    return None


def _probe(address: tuple[str, int]) -> tuple[bool, bool | None]:
    """Returns (has TLS, has SASL). Raises OSError where there is no answer."""
    with socket.create_connection(address, _TIMEOUT_S) as plain, suppress(OSError, EOFError):
        if (has_sasl := _has_sasl(plain)) is not None:
            return False, has_sasl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is told to it
    with socket.create_connection(address, _TIMEOUT_S) as raw, context.wrap_socket(raw) as encrypted:
        with suppress(OSError, EOFError):
            return True, _has_sasl(encrypted)
        return True, None


def _has_sasl(connection: socket.socket) -> bool | None:
    """None for what is no answer of Kafka's."""
    connection.sendall(struct.pack(">i", len(_SASL_HANDSHAKE)) + _SASL_HANDSHAKE)
    answer = b""
    while len(answer) < 10:
        if not (part := connection.recv(10 - len(answer))):
            raise EOFError
        answer += part
    _, correlation, error = struct.unpack(">iih", answer)
    return {_NO_SUCH_MECHANISM: True, _NO_SASL: False}.get(error) if correlation == 1 else None

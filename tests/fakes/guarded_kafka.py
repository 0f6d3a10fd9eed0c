"""A Kafka that lets not everybody in: listeners with SASL (PLAIN, SCRAM) and TLS, and rights by user."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streamtrain.broker import Broker
from streamtrain.broker.data_folder import PORTS, port_free

HOST = "127.0.0.1"
PASSWORD = "right"
_JAAS = "org.apache.kafka.common.security"


class GuardedKafka:
    """User alice may do anything, mallory nothing; the listener without a password is the super user's."""

    def __init__(self, start: Callable[..., Broker], folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("needs openssl for certificates")
        self.authority, self.stranger = _certificates(folder), _authority(folder, "stranger")
        names = ("PLAINTEXT", "CONTROLLER", "SASL", "TLS", "CERTIFICATE")
        self._ports = dict(zip(names, free_ports(5), strict=True))
        self._folder = folder
        self.broker = start(data=folder / "kafka", port=self._ports["PLAINTEXT"], properties=self._properties(folder))
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap})
        self.set_password("alice", PASSWORD)
        everything = [
            (ResourceType.TOPIC, "*"), (ResourceType.GROUP, "*"), (ResourceType.TRANSACTIONAL_ID, "*"),
            (ResourceType.BROKER, "kafka-cluster"),
        ]  # fmt: skip
        self._set_rights("alice", everything, AclOperation.ALL, AclPermissionType.ALLOW)

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self._ports['PLAINTEXT']}"

    def fresh_name(self, prefix: str) -> str:
        return prefix

    def allow(self, user: str, kind: ResourceType, name: str, operation: AclOperation) -> None:
        """Gives one right, of this name alone."""
        self._set_rights(user, [(kind, name)], operation, AclPermissionType.ALLOW)

    def deny(self, user: str, kind: ResourceType, name: str, operation: AclOperation) -> None:
        """Takes one right away, of this name or what begins with it."""
        self._set_rights(user, [(kind, name)], operation, AclPermissionType.DENY, ResourcePatternType.PREFIXED)

    def _set_rights(
        self,
        user: str,
        things: list[tuple[ResourceType, str]],
        operation: AclOperation,
        permission: AclPermissionType,
        pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    ) -> None:
        rights = [AclBinding(kind, name, pattern, f"User:{user}", "*", operation, permission) for kind, name in things]
        for done in self._admin.create_acls(rights).values():
            done.result(30)

    def set_password(self, user: str, password: str) -> None:
        """Sets the password of a user who comes by SCRAM; open connections go on."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        upserts = [UserScramCredentialUpsertion(user, info, password.encode())]
        for done in self._admin.alter_user_scram_credentials(upserts).values():
            done.result(30)

    def sasl(self, user: str, password: str, mechanism: str = "PLAIN") -> dict[str, str]:
        """Settings of a client."""
        return {
            "bootstrap.servers": f"{HOST}:{self._ports['SASL']}", "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password,
        }  # fmt: skip

    def tls(self, authority: Path) -> dict[str, str]:
        bootstrap = f"{HOST}:{self._ports['TLS']}"
        return {"bootstrap.servers": bootstrap, "security.protocol": "SSL", "ssl.ca.location": str(authority)}

    def certified(self, certificate: str) -> dict[str, str]:
        """Settings of the listener that wants a client's certificate: "valid", "expired", "stranger" or none."""
        settings = {**self.tls(self.authority), "bootstrap.servers": f"{HOST}:{self._ports['CERTIFICATE']}"}
        if certificate:
            own = str(self._folder / f"{certificate}.client.pem")
            settings |= {"ssl.certificate.location": own, "ssl.key.location": own}
        return settings

    def plain(self, listener: str) -> dict[str, str]:
        """Settings that name a listener's address and not what it wants."""
        return {"bootstrap.servers": f"{HOST}:{self._ports[listener]}"}

    def _properties(self, folder: Path) -> dict[str, str]:
        places = {name: f"{name}://{HOST}:{port}" for name, port in self._ports.items()}
        users = " ".join(f'user_{user}="{PASSWORD}"' for user in ("alice", "mallory"))
        tls: dict[str, Any] = {
            "ssl.keystore.type": "PEM", "ssl.keystore.location": folder / "server.pem", "ssl.client.auth": "none",
        }  # fmt: skip
        certified = {
            **tls, "ssl.client.auth": "required", "ssl.truststore.type": "PEM",
            "ssl.truststore.location": folder / "authority.pem",
        }  # fmt: skip
        return {
            "listeners": ",".join(places.values()),
            "advertised.listeners": ",".join(place for name, place in places.items() if name != "CONTROLLER"),
            "controller.quorum.voters": f"1@{HOST}:{self._ports['CONTROLLER']}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,"
            "CERTIFICATE:SSL",
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.plain.sasl.jaas.config": f"{_JAAS}.plain.PlainLoginModule required {users};",
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{_JAAS}.scram.ScramLoginModule required;",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:CN={HOST}",
            **{f"listener.name.tls.{name}": str(value) for name, value in tls.items()},
            **{f"listener.name.certificate.{name}": str(value) for name, value in certified.items()},
        }


def free_ports(count: int) -> list[int]:
    return [port for port in random.sample(PORTS, 200) if port_free(port)][:count]


def _certificates(folder: Path) -> Path:
    """An authority, a server's certificate by it, and clients' by it and by a stranger, each with its key; gives the
    authority's file."""
    authority, stranger = _authority(folder, "authority"), _authority(folder, "unknown")
    _certificate(folder, "server", authority)
    for name, by, days in (("valid", authority, 2), ("expired", authority, -1), ("stranger", stranger, 2)):
        _certificate(folder, f"{name}.client", by, days)
    return authority


def _certificate(folder: Path, name: str, authority: Path, days: int = 2) -> None:
    """A certificate and its key in `NAME.pem`; one of -1 days has expired yesterday."""
    request, key, certificate = folder / f"{name}.csr", folder / f"{name}.key", folder / f"{name}.crt"
    _openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj", f"/CN={HOST}")
    names = folder / "names"
    names.write_text(f"subjectAltName=IP:{HOST}\n")
    _openssl(
        "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority.with_suffix(".key"), "-CAcreateserial",
        "-out", certificate, "-days", days, "-extfile", names,
    )  # fmt: skip
    (folder / f"{name}.pem").write_text(key.read_text() + certificate.read_text())


def _authority(folder: Path, name: str) -> Path:
    """An authority's certificate; its key lies beside it."""
    certificate = folder / f"{name}.pem"
    key = ["-newkey", "rsa:2048", "-nodes", "-keyout", folder / f"{name}.key"]
    _openssl("req", "-x509", *key, "-out", certificate, "-days", "2", "-subj", f"/CN={name}")
    return certificate


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

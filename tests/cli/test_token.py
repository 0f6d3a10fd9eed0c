"""The token of what listens: one form, wherever it comes from, and where there must be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamtrain.cli.token import TOKEN, token_for
from streamtrain.errors import UserMistake

GOOD = "s3cret-._~+/8=="


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_this_machine_alone_needs_none(host: str) -> None:
    assert token_for(host, None) == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "trainer.example", "localhost.example", ""])
def test_others_need_one(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserMistake, match=f"--host {host}: expected a token where others can connect"):
        token_for(host, None)
    monkeypatch.setenv(TOKEN, f" {GOOD}\n")
    assert token_for(host, None) == GOOD


def test_a_file_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, GOOD)
    (tmp_path / "token").write_text("0123456789\n")
    assert token_for("0.0.0.0", tmp_path / "token") == "0123456789"
    with pytest.raises(UserMistake, match=r"--token-file .*none: expected a file that holds a token"):
        token_for("127.0.0.1", tmp_path / "none")


@pytest.mark.parametrize(
    "text", ["short", "with a space", "naïve-token", "tab\ttab-tab", "a;b=c;path=", "=in=front", "{curly}-braces"]
)
def test_what_is_no_token(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, text)
    with pytest.raises(UserMistake, match=f"{TOKEN}: expected a token of 8 or more"):
        token_for("127.0.0.1", None)
    (tmp_path / "token").write_text(text)
    with pytest.raises(UserMistake, match=r"--token-file .*: expected a token of 8 or more"):
        token_for("127.0.0.1", tmp_path / "token")


def test_an_empty_file_is_no_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(UserMistake, match="expected a token of 8 or more"):
        token_for("127.0.0.1", tmp_path / "token")

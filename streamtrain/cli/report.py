"""Shows the result of `verify` and `replay`."""

from __future__ import annotations

from typing import Any, Protocol

import typer

from streamtrain.cli.output import Output


class Report(Protocol):
    """A result: the exit code, as a document, and in lines for people."""

    @property
    def exit_code(self) -> int: ...

    def as_dict(self) -> dict[str, Any]: ...

    def lines(self) -> list[str]: ...


def show_report(out: Output, report: Report) -> None:
    """Shows it and leaves with its exit code."""
    out.document(report.as_dict(), "\n".join(report.lines()))
    raise typer.Exit(report.exit_code)

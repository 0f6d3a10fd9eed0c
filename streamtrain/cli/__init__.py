"""The command line: one file a command group."""


def main() -> None:
    raise SystemExit("no commands yet")

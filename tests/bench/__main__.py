"""`python -m tests.bench`: the list of the benches. `python -m tests.bench NAME`: one of them, measured."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"   # before NumPy is imported
sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

from tests.bench import harness  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=harness.__doc__)
    parser.add_argument("name", nargs="?", help="a bench; without it all are listed, with rivals and bars")
    parser.add_argument("--smoke", action="store_true", help="a short run: every line, no figure to rely on")
    parser.add_argument("--seconds", type=float, help="of measuring, in all")
    parser.add_argument("--turns", type=int, help="measurements of each side, of which the median counts")
    parser.add_argument("--rows", type=int, help="of data")
    parser.add_argument("--seeds", type=int, help="trainings of each side, of which the median counts")
    parser.add_argument("--only", metavar="TEXT", help="only the lines whose name has this text")
    given = vars(parser.parse_args())
    name, smoke = given.pop("name"), given.pop("smoke")
    if name is None:
        print("\n".join(harness.listing()))
        return
    if name not in harness.MODULES:
        raise SystemExit(f"{name}: no such bench; there are {', '.join(sorted(harness.MODULES))}")
    each = harness.load(name)
    options = harness.with_options(each, smoke, **given)
    wanted = harness.environments(each)
    if wanted is None:
        harness.show(each.figures(**options))
        return
    for environment in wanted:   # libraries read theirs when they are loaded
        command = [sys.executable, "-m", "tests.bench", *sys.argv[1:]]
        subprocess.run(command, env={**os.environ, **environment}, check=True)


if __name__ == "__main__":
    main()

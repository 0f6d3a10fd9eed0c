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

from streamtrain import _native  # noqa: E402
from tests.bench import harness  # noqa: E402

EVERY_ISA = [isa for isa in ("v4", "v3") if isa in _native.supported_isas()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=harness.__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(harness.MODULES), help="without it all are listed, with bars")
    parser.add_argument("--smoke", action="store_true", help="a short run: every line, no figure to rely on")
    parser.add_argument("--seconds", type=float, help="of measuring, in all")
    parser.add_argument("--turns", type=int, help="measurements of each side, of which the median counts")
    parser.add_argument("--rows", type=int, help="of data")
    parser.add_argument("--seeds", type=int, help="trainings of each side, of which the median counts")
    parser.add_argument("--only", metavar="TEXT", help="only the lines whose name has this text")
    options = {key: value for key, value in vars(parser.parse_args()).items() if value is not None}
    name, smoke = options.pop("name", None), options.pop("smoke")
    if name is None:
        print("\n".join(harness.listing()))
        return
    each = harness.load(name)
    if unknown := [f"--{key}" for key in options if key not in each.smoke and key not in each.defaults]:
        parser.error(f"{name} has no {', '.join(unknown)}; it has {', '.join(f'--{key}' for key in each.defaults)}")
    isas = EVERY_ISA if each.every_isa and "STREAMTRAIN_ISA" not in os.environ else [harness.isa()]
    environments = [{"STREAMTRAIN_ISA": isa, **each.environment.get(isa, {})} for isa in isas]
    if len(environments) < 2 and each.environment.get(isas[0], {}).items() <= os.environ.items():
        return harness.show(each.figures(**{**(each.smoke if smoke else {}), **options}))
    for environment in environments:   # libraries read theirs when they are loaded
        command = [sys.executable, "-m", "tests.bench", *sys.argv[1:]]
        subprocess.run(command, env={**os.environ, **environment}, check=True)


if __name__ == "__main__":
    main()

"""A training step of a PyTorch module (28-64-64-1, Adam) in a plan of ours, against the same module in a plain PyTorch
loop over arrays in memory, one thread each: eager Adam, and fused Adam, its best form.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Callable

from bench_step import FEATURES, NETWORKS, SPEC, best_seconds, eager, show, stepping

from streamtrain import _native
from streamtrain.compute.model import Model
from streamtrain.compute.module_spec import Inputs
from streamtrain.compute.torch import TorchModule, described, in_process_of_its_own

ROWS = {32: None, 256: 0.9, 4096: None}   # and the least ratio to the better of both


def ours(sizes: list[int], rows: int) -> Callable[[], object]:
    from torch import nn

    parts: list[nn.Module] = []
    for inputs, outputs in zip([FEATURES, *sizes], [*sizes, 1], strict=True):
        parts += [nn.Linear(inputs, outputs), nn.ReLU()]
    source = TorchModule.of(nn.Sequential(*parts[:-1]))
    told = described(source, Inputs(FEATURES, 1, {}), "f32").to_dict()
    return stepping(Model({**SPEC, "torch": told}, source), rows, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    if importlib.util.find_spec("torch") is None:
        print(json.dumps({"bench": "module", "skipped": "PyTorch is not installed (pip install '.[bench]')"}))
        return
    in_process_of_its_own()
    name, sizes = next(iter(NETWORKS.items()))
    for rows, bar in ROWS.items():
        rivals = {"PyTorch eager": eager(sizes, rows, False), "PyTorch fused Adam": eager(sizes, rows, True)}
        found = best_seconds([ours(sizes, rows), *rivals.values()], seconds / len(ROWS))
        for rival, its in zip(rivals, found[1:], strict=True):
            show(f"module {name}", rows, _native.select_isa("auto"), [found[0], its], rival, bar)


if __name__ == "__main__":
    main()

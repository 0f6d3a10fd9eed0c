"""`streamtrain train`, one worker, from Kafka, one msgpack row a record, against a plain Python loop and ingest alone.

The loop consumes, decodes, and trains scikit-learn's logistic model by the same 256 rows; it publishes nothing.
"""

from __future__ import annotations

import argparse
import os

from bench_ingest import ingest_rate
from workbench import NETWORKS, Bed, figure, in_turns, kafka_at, python_rate, train_rate

from streamtrain import _native

FIGURES = 4  # lines of a whole run
SMOKE = ["--seconds", "1", "--turns", "1"]

TURNS = 3
RECORDS_A_SECOND = 750_000  # of the bench: a run lasts two seconds, of which its last publication is a tenth
PYTHON_BAR = 5.0


def ingest_bar(network: str, isa: str) -> float:
    return 0.5 if network != "logistic" and isa != "v4" else 0.7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--bootstrap", default=os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP"))
    options = parser.parse_args()
    isa = _native.select_isa(os.environ.get("STREAMTRAIN_ISA", "auto"))
    with kafka_at(options.bootstrap) as bootstrap:
        bed = Bed(bootstrap)
        bed.fill(int(RECORDS_A_SECOND * options.seconds))
        sides = {
            name: lambda layers=layers: train_rate(bed, bed.job(layers=layers)) for name, layers in NETWORKS.items()
        }
        found = in_turns(
            {
                **sides,
                "ingest": lambda: ingest_rate(bed),
                "python": lambda: python_rate(bed, bed.count // 8, learns=True),
            },
            options.turns,
        )
        found = {name: round(rate) for name, rate in found.items()}
        for network in NETWORKS:
            mine = found[network]
            figure(f"train {network} {isa} / Python loop", mine, found["python"], PYTHON_BAR, "rows/s")
            figure(f"train {network} {isa} / ingest alone", mine, found["ingest"], ingest_bar(network, isa), "rows/s")


if __name__ == "__main__":
    main()

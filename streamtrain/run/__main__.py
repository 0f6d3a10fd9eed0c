"""The module that the interpreter of a spawned process runs."""

from __future__ import annotations

from streamtrain.run.entry import run_to_end

if __name__ == "__main__":
    run_to_end()

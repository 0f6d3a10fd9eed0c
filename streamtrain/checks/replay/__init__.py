"""Replay: trains the rounds of the log again from a snapshot and compares. Reads topics only, writes nothing."""

from streamtrain.checks.replay.replay import replay
from streamtrain.checks.replay.replay_report import Replayed, Report

__all__ = ["Replayed", "Report", "replay"]

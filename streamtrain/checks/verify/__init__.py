"""Verify: holds the topics of a job, running or not, against what streamtrain guarantees. Reads only."""

from streamtrain.checks.verify.report import Check, Report
from streamtrain.checks.verify.verify import verify

__all__ = ["Check", "Report", "verify"]

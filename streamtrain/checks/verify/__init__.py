"""Verify: holds the topics of a job, running or not, against what streamtrain guarantees. Reads only."""

from streamtrain.checks.verify.verify import verify
from streamtrain.checks.verify.verify_report import Check, Report

__all__ = ["Check", "Report", "verify"]

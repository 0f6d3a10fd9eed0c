"""Verify: holds the topics of a job, running or not, against the guarantees of DESIGN section 3. Reads only."""

from streamtrain.verify.report import Check, Report
from streamtrain.verify.verify import verify

__all__ = ["Check", "Report", "verify"]

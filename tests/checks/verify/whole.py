"""Every forgery of whole messages there is."""

from __future__ import annotations

from tests.checks.verify import forged_history, forged_messages
from tests.checks.verify.forgery_table import FORGERIES

__all__ = ["FORGERIES", "forged_history", "forged_messages"]

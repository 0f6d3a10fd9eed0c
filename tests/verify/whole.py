"""Every forgery of whole messages there is."""

from __future__ import annotations

from tests.verify import forged_history, forged_messages
from tests.verify.forgery_table import FORGERIES

__all__ = ["FORGERIES", "forged_history", "forged_messages"]

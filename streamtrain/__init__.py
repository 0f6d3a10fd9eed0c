"""Training that never stops, on Kafka."""

__version__ = "0.1.0"

"""The telemetry of a running trainer or predictor: Prometheus metrics at /metrics, readiness at /ready."""

from streamtrain.telemetry.predictor import PredictorMeters
from streamtrain.telemetry.server import Telemetry
from streamtrain.telemetry.trainer import TrainerMeters

__all__ = ["PredictorMeters", "Telemetry", "TrainerMeters"]

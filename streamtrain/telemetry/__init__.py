"""The telemetry of a running trainer or predictor: Prometheus metrics at /metrics, readiness at /ready."""

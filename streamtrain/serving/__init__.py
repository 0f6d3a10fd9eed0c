"""Predictions over HTTP from models in this process: `streamtrain serve` (extra `serve`).

Reads snapshots from Kafka and writes nothing. FastAPI and uvicorn are imported when a server is made.
"""

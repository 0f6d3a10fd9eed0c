"""Snapshots carried from a job to a file, and from there into another job or cluster."""

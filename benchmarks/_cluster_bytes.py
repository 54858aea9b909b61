"""Bytes that the workers of a Dask cluster received from each other, as Dask logs them."""

from __future__ import annotations

from collections import deque

KEEP_COPIES = {"distributed.scheduler.active-memory-manager.start": False}
"""Settings with which workers keep what they have fetched."""


def log_all(client):
    """Let all workers log all transfers, not the last 1,000; their other logs stay short, since they take memory."""
    client.run(_log_all)


def received(client):
    """So far, by all workers."""
    return sum(client.run(_received).values())


def _log_all(dask_worker):
    dask_worker.transfer_incoming_log = deque(dask_worker.transfer_incoming_log, maxlen=None)


def _received(dask_worker):
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)

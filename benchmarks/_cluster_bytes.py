"""Bytes that the workers of a Dask cluster received from each other, as Dask logs them."""

from __future__ import annotations

LONG_LOG = {
    "distributed.admin.low-level-log-length": 1_000_000,
    "distributed.scheduler.active-memory-manager.start": False,
}
"""Settings with which the log holds all transfers of a benchmark (1,000 by default), and workers keep what they have fetched."""


def received(client):
    """So far, by all workers."""
    return sum(client.run(_received).values())


def _received(dask_worker):
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)

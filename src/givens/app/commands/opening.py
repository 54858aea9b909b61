"""Where the samples of a command lie: in memory, or on a Dask cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from givens.app.commands.options import Running, Source
from givens.app.commands.samples import SAMPLE_NOUNS, CommandSamples, InMemory
from givens.app.commands.session import Session
from givens.app.tables import Table


def opened(
    session: Session,
    source: Source,
    run: Running,
    *,
    dense: bool = False,
    nouns: tuple[str, str] = SAMPLE_NOUNS,
    table: Table | None = None,
) -> AbstractContextManager[CommandSamples]:
    """Open the samples of a file, in memory or on a cluster; of a table that has been read if `table` is one."""
    if run.cluster is not None:
        from givens.app.commands.cluster import on_cluster

        return on_cluster(session, source, run.cluster, run.threads, dense=dense, nouns=nouns)
    table = source.table(session, nouns) if table is None else table
    samples = InMemory(session, source, table)
    if dense and hasattr(samples.X, "toarray"):
        samples.X = samples.X.toarray()
    return nullcontext(samples)

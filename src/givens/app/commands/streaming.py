"""`givens sparse-pca --stream`: two passes over a file, in memory that does not grow with it.

The first pass learns the components. The second writes the scores and adds up what the explained variance
needs: the Gram matrix G of the centred scores and the total variance. The adjusted variance is that of QR:
R = chol(G), ΣR_jj² over the total.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from givens.app.commands.options import Source, log2, named
from givens.app.commands.results import Described, described, numbered, sparse_pca_outcome, write_score_blocks
from givens.app.commands.session import Session
from givens.app.report.views import MOST_POINTS
from givens.app.tables import TableRows, staged
from givens.app.tables.table import count
from givens.metrics import adjusted_from_gram


class Thinned:
    """Evenly chosen samples of a stream of any length: every k-th, k doubled whenever too many are held."""

    def __init__(self, most: int = 2 * MOST_POINTS) -> None:
        self.most, self.step, self.seen = most, 1, 0
        self.kept: list[tuple[np.ndarray, str, list[str]]] = []

    def add(self, scores: np.ndarray, names: list[str], labels: Sequence[Sequence[str]] = ()) -> None:
        """Take the next samples; `labels` are lists, one for each kind of label."""
        for k in range(len(scores)):
            if (self.seen + k) % self.step == 0:
                self.kept.append((scores[k].copy(), names[k], [words[k] for words in labels]))
                if len(self.kept) >= self.most:
                    self.kept, self.step = self.kept[::2], 2 * self.step
        self.seen += len(scores)


class ScoreMoments:
    """The sum and the products of scores, some samples at a time."""

    def __init__(self, components: int) -> None:
        self.rows = 0
        self.sum = np.zeros(components)
        self.gram = np.zeros((components, components))

    def add(self, scores: np.ndarray) -> None:
        """Add some scores."""
        self.rows += len(scores)
        self.sum += scores.sum(axis=0)
        self.gram += scores.T @ scores

    def centred(self) -> np.ndarray:
        """Return the Gram matrix of the centred scores."""
        return self.gram - np.outer(self.sum, self.sum) / max(1, self.rows)


class ExplainedShares:
    """Sums over chunks from which the explained variance of a stream is computed."""

    def __init__(self, mean: np.ndarray, components: int, scale: np.ndarray | None = None) -> None:
        self.mean, self.scale = mean, scale
        self.total = 0.0
        self.scores = ScoreMoments(components)

    def add(self, values: np.ndarray, scores: np.ndarray) -> None:
        """Add a chunk and its scores."""
        centred = values - self.mean
        if self.scale is not None:
            centred /= self.scale
        self.total += float(np.einsum("ij,ij->", centred, centred))
        self.scores.add(scores)

    def adjusted(self) -> np.ndarray:
        """Return the adjusted share of each component."""
        adjusted = adjusted_from_gram(self.scores.centred())
        return adjusted / self.total if self.total > 0 else np.zeros(len(adjusted))


def learn(session: Session, source: Source, rows: TableRows, model: Any) -> None:
    """Make the first pass."""
    raised = 0
    with session.step(f"learning from {source.file.name}", total=rows.total) as advance, session.fitting():
        for chunk in rows:
            values, low = log2(chunk.values, source.least) if source.log2 else (chunk.values, 0)
            raised += low
            model.partial_fit(values)
            advance(len(chunk.values))
    if source.log2:
        rows.notes.append(source.log2_note(f"{raised:,} of them"))
        session.say(rows.notes[-1])


def run(session: Session, source: Source, model: Any) -> None:
    """Learn from the rows of a file, then write what `givens sparse-pca` writes."""
    with staged(session.out) as files:
        rows = source.rows(session)
        learn(session, source, rows, model)
        if rows.dropped:
            rows.notes.append(f"left out {count(rows.dropped, 'sample')} with missing values (--impute drop)")
            session.say(rows.notes[-1])
        if model.missing is not None and model.n_missing_:
            rows.notes.append(estimated(model))
            session.say(rows.notes[-1])
        with session.step("turning what was kept into components"):
            weights = np.asarray(model.components_)
        mean = np.asarray(model.mean_, np.float64)
        moments, thinned = ExplainedShares(mean, len(weights), model.scale_), Thinned()
        with files.open("scores.csv") as stream:
            write_scores(session, source, rows, model, moments, thinned, stream)
        scores, names, words = zip(*thinned.kept)
        labels = {name: [line[k] for line in words] for k, name in enumerate(rows.label_names)}
        data = Described(
            source.file,
            moments.scores.rows,
            rows.variables,
            rows.notes,
            described(labels.get(rows.label_name)),
        )
        sparse_pca_outcome(
            session,
            data,
            model,
            share=moments.adjusted(),
            score_gram=moments.scores.centred(),
            samples=(names, np.array(scores), labels),
        ).write(session, files)


def estimated(model: Any) -> str:
    """Return the note on missing values that a model has estimated."""
    return (
        f"estimated {count(model.n_missing_, 'missing value')} from the values that are there (--impute em)"
    )


def write_scores(
    session: Session,
    source: Source,
    rows: TableRows,
    model: Any,
    moments: ExplainedShares,
    thinned: Thinned,
    stream: IO[str],
) -> None:
    """Make the second pass."""
    header = numbered("component", len(moments.scores.sum))
    completion = None if model.missing is None else model.completion_
    with session.step("writing the scores", total=rows.total) as advance:

        def blocks() -> Iterator[tuple[list[list[str]], np.ndarray]]:
            for chunk in (named(session, chunk) for chunk in rows):
                values = source.prepared(chunk.values)
                if completion is not None and np.isnan(values).any():
                    values = completion.fill(np.asarray(values, np.float64), np.isnan(values))
                scores = np.asarray(model.transform(values), np.float64)
                moments.add(np.asarray(values, np.float64), scores)
                thinned.add(scores, chunk.names, chunk.labels)
                yield [chunk.names, *chunk.labels], scores
                advance(len(values))

        write_score_blocks(stream, rows.label_names, [], header, blocks())

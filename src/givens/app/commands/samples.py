"""The samples of a command, wherever they lie: in memory, in a file that is read some rows at a time, or on a Dask cluster.

A command fits its model to them, and has the scores of all of them written. What a page needs is kept on the way: evenly chosen
samples with their scores, names and labels, the Gram matrix of the scores, and of how many samples each score is the largest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import numpy as np

from givens.app.commands.options import Source, log2, no_formulas
from givens.app.commands.session import Session
from givens.app.report.views import MOST_POINTS
from givens.app.tables import Table
from givens.app.tables.table import Block, count
from givens.app.tables.write import Staged, distinct, write_matrix

SAMPLE_NOUNS = ("sample", "variable")  # what rows and columns are


class Thinned:
    """Evenly chosen rows of any number of them: every k-th, k doubled whenever `most` are held; all of them if that is None."""

    def __init__(self, most: int | None = 2 * MOST_POINTS) -> None:
        self.most, self.step, self.seen, self.number = most, 1, 0, 0
        self._blocks: list[Block] = []

    def add(self, block: Block) -> None:
        """Take the next rows."""
        places = np.arange(self.seen, self.seen + len(block.values))
        self._blocks.append(block.selected(places % self.step == 0))
        self.seen += len(places)
        self.number += len(self._blocks[-1].values)
        while self.most is not None and self.number >= self.most:
            block = self.block
            self._blocks, self.step = [block.selected(np.arange(self.number) % 2 == 0)], 2 * self.step
            self.number = len(self._blocks[0].values)

    @property
    def block(self) -> Block:
        """The chosen rows."""
        return Block.joined(self._blocks)

    @property
    def rows(self) -> np.ndarray:
        """Their numbers."""
        return np.arange(0, self.seen, self.step)


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


class Scored:
    """What is known of the scores of all samples; `shown` are evenly chosen ones for the page, `files` wait to be written."""

    def __init__(self, samples: CommandSamples, header: list[str]) -> None:
        self.samples, self.header = samples, header
        self.moments = ScoreMoments(len(header))
        self.largest = np.zeros(len(header), dtype=int)
        self.thinned = Thinned(samples.most_shown)
        self.tally: Counter[str] = Counter()
        self.files: dict[str, Callable[[IO[str]], None]] = {}

    def add(self, block: Block) -> None:
        """Take the scores of the next samples."""
        self.moments.add(block.values)
        self.largest += np.bincount(block.values.argmax(axis=1), minlength=len(self.header))
        self.thinned.add(block)
        if block.labels:
            self.tally.update(block.labels[0])

    def finish(self) -> None:
        """Make what is shown of what was kept."""
        self.shown = self.thinned.block
        self.labels = dict(zip(self.samples.label_names, self.shown.labels))

    @property
    def number(self) -> int:
        """How many samples there are."""
        return self.moments.rows

    @property
    def described(self) -> str:
        """The most frequent labels with their counts."""
        if not self.samples.label_names:
            return "without labels"
        shown = ", ".join(f"{number:,} {label}" for label, number in self.tally.most_common(3))
        return shown if len(self.tally) <= 3 else f"{len(self.tally):,} different labels"

    def labels_with(self, found: str) -> dict[str, list[str]]:
        """Return the labels to colour by: those of the table, then the largest score, under a name of its own."""
        return {**self.labels, distinct([found], list(self.labels))[0]: self.assigned(self.shown.values)}

    def assigned(self, scores: np.ndarray) -> list[str]:
        """Return what the largest score of each sample is called."""
        return [self.header[k] for k in scores.argmax(axis=1)]


class CommandSamples:
    """Samples, their names and labels.

    Attributes
    ----------
    X : array, sparse matrix or dask array
        As estimators take them.
    most_shown : int or None
        Of which so many at most are kept for the page.
    """

    most_shown: int | None = 2 * MOST_POINTS
    waits = False  # whether scores.csv is written with the other files, after them

    def __init__(
        self,
        session: Session,
        source: Source,
        X: Any,
        variables: list[str],
        label_names: list[str],
        notes: list[str],
        total: int | None,
    ) -> None:
        self.session, self.source, self.file, self.X = session, source, source.file, X
        self.notes, self.total = notes, total
        self.variables = no_formulas(variables) if session.excel_safe else variables
        self.label_names = no_formulas(label_names) if session.excel_safe else label_names
        session.variables = self.variables

    def note(self, text: str) -> None:
        """Say a sentence, in the results too."""
        self.notes.append(text)
        self.session.say(text)

    def fit(self, model: Any) -> None:
        """Fit a model to all samples."""
        with self.session.fitting():
            model.fit(self.X)

    def blocks(self, transform: Callable[[Any], Any]) -> Iterator[Block]:
        """Yield the scores of all samples in order, with names and labels."""
        raise NotImplementedError

    def computed(self, value: Any) -> np.ndarray:
        """Return what was computed of X as an array."""
        return value

    def shown(self, scored: Scored) -> np.ndarray:
        """Return the samples that the page shows."""
        return self.computed(self.X if scored.thinned.step == 1 else self.X[scored.thinned.rows])

    def scored(
        self, transform: Callable[[Any], Any], header: list[str], files: Staged, assigned: str = ""
    ) -> Scored:
        """Compute the scores of all samples and write them, with the name of the largest under the heading `assigned`."""
        scored = Scored(self, header)
        extra = [assigned] if assigned else []
        headings = ["sample", *distinct(self.label_names, ["sample", *extra, *header]), *extra]

        def lines(blocks: Iterable[Block]) -> Iterator[tuple[list[list[str]], np.ndarray]]:
            for block in blocks:
                words = [block.names, *block.labels, *([scored.assigned(block.values)] if assigned else [])]
                yield words, block.values

        def counted() -> Iterator[Block]:
            for block in self.blocks(transform):
                names, labels = block.names, block.labels
                if self.session.excel_safe:
                    names, labels = no_formulas(names), [no_formulas(words) for words in labels]
                block = Block(np.asarray(block.values, np.float64), names, labels)
                scored.add(block)
                yield block
                advance(len(block.values))

        with self.session.step("writing the scores", total=self.total) as advance:
            if self.waits:
                held = list(counted())
                scored.files["scores.csv"] = lambda stream: write_matrix(
                    stream, headings, header, lines(held)
                )
            else:
                with files.open("scores.csv") as stream:
                    write_matrix(stream, headings, header, lines(counted()))
        scored.finish()
        return scored


class InMemory(CommandSamples):
    """The samples of a table."""

    most_shown = None
    waits = True

    def __init__(self, session: Session, source: Source, table: Table) -> None:
        super().__init__(
            session, source, table.values, table.variables, list(table.all_labels), table.notes, None
        )
        self.table = table

    def blocks(self, transform: Callable[[Any], Any]) -> Iterator[Block]:
        """Yield all scores at once."""
        yield Block(transform(self.X), self.table.samples, list(self.table.all_labels.values()))


class Streamed(CommandSamples):
    """The samples of a file, read some rows at a time: once to learn from, once for the scores."""

    def __init__(self, session: Session, source: Source) -> None:
        self.rows = rows = source.rows(session)
        super().__init__(session, source, None, rows.variables, rows.label_names, rows.notes, rows.total)
        self.prepare: Callable[[np.ndarray], np.ndarray] = source.prepared  # of a block, before it is scored

    def fit(self, model: Any) -> None:
        """Learn from all rows."""
        source, raised = self.source, 0
        reading = self.session.step(f"learning from {self.file.name}", total=self.total)
        with reading as advance, self.session.fitting():
            for block in self.rows:
                values, low = log2(block.values, source.least) if source.log2 else (block.values, 0)
                raised += low
                model.partial_fit(values)
                advance(len(values))
        if source.log2:
            self.note(source.log2_note(f"{raised:,} of them"))
        if self.rows.dropped:
            self.note(f"left out {count(self.rows.dropped, 'sample')} with missing values (--impute drop)")

    def blocks(self, transform: Callable[[Any], Any]) -> Iterator[Block]:
        """Yield the scores of all rows."""
        for block in self.rows:
            yield Block(transform(self.prepare(block.values)), block.names, block.labels)

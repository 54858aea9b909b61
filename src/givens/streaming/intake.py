"""How samples come into a stream's model: checked, counted, and refused with the model as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from givens.streaming import settings as checks
from givens.streaming.components import StreamScores
from givens.streaming.sketch import Sketch, TooLarge

TYPES = [np.float64, np.float32]


class StreamIntake(StreamScores):
    """Takes in tables and batches."""

    threads: int | None

    def _until(self, most: int | None, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches until there are enough; the one after, which may not be there yet, is not waited for."""
        while most is None or not self.__sklearn_is_fitted__() or self._sketch.count < most:
            try:
                batch = next(batches)
            except StopIteration:
                return
            yield batch

    @contextmanager
    def _as_it_was_if_refused(self) -> Iterator[None]:
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _add_table(self, X: Any, most: int | None, going_on: bool) -> None:
        """Take in a table. Whether its numbers are finite is found out on the way: looking first takes as long as centring."""
        least = 1 if going_on else 2
        table = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=TYPES,
            order="C",
            reset=not going_on,
            ensure_min_samples=least,
            ensure_all_finite=False,
        )
        try:
            self._add(table, most)
        except TooLarge:
            validate_data(self, X, accept_sparse="csr", dtype=TYPES, reset=False)  # says what is wrong
            raise

    def _checked(self, batch: Any, first: bool, name: str) -> Any:
        """A batch of a stream in a type that can be taken in; whatever is wrong with it, its number is said."""
        try:
            checked = check_array(batch, accept_sparse="csr", dtype=TYPES, order="C", input_name=name)
            if not first and checked.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"{name} has {checked.shape[1]} features, but those before it have {self.n_features_in_}"
                )
            validate_data(self, batch, reset=first, skip_check_array=True)  # the names, of data frames
        except (TypeError, ValueError) as error:
            text = " ".join(str(error).split())
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(text if name in text else f"{name}: {text}") from error
        return checked

    def _add(self, X: Any, most: int | None) -> None:
        """Take in checked rows; what can be refused is refused before anything changes."""
        sketch: Sketch | None = getattr(self, "_sketch", None)
        started = checks.settings(self, X.shape[1], None if sketch is None else self._settings)
        if sketch is None:
            sketch = Sketch(X.shape[1], started.columns, X.dtype, started.forgetting, started.scale)
        checks.asked(self, started, sketch)
        if most is not None:
            X = X[: max(most - sketch.count, 0)]
        self._sketch, self._settings, self._cache = sketch, started, {}
        sketch.add(X, checks.rule(self, started, sketch), self.threads)

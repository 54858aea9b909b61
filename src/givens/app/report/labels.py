"""Which components separate which labels.

Three measures, by the kind of label:

- two classes: the AUC, the probability that a sample of one class scores above one of the other, ties counted half
  (Mann-Whitney's U over n₀n₁); it is given for the class that scores higher, so it is at least 1/2;
- more classes: the correlation ratio η², the share of the scores' variance that lies between the classes;
- numbers (more different ones than classes could be): Spearman's rank correlation.

A p-value is the share of random assignments of the labels to the samples that separate at least as well, the assignment found
counted among them, so it is at least 1 / (1 + PERMUTATIONS). The second p-value asks the same of the best of all components,
so it makes up for having looked at several (Westfall and Young's step for the maximum).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

PERMUTATIONS = 999
MOST_SAMPLES = 20_000  # of more samples, so many evenly chosen ones are used


@dataclass
class Separation:
    """How well one component separates one label."""

    label: str
    component: int
    measure: str  # "AUC", "correlation ratio" or "rank correlation"
    value: float
    high: str  # the class of the highest scores
    p: float
    p_any: float  # of the best of all components
    samples: int


def as_numbers(labels: Sequence[str]) -> np.ndarray | None:
    """Return labels as numbers, or None where they are classes.

    >>> as_numbers(["1", "2", "1"]) is None, as_numbers([str(k / 2) for k in range(12)])[:3].tolist()
    (True, [0.0, 0.5, 1.0])
    """
    # So many different numbers are no longer classes
    if len(set(labels)) < 12:
        return None
    try:
        numbers = np.array([float(label) for label in labels])
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def separations(
    scores: np.ndarray,
    labels: Mapping[str, Sequence[str]],
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> tuple[list[Separation], list[str]]:
    """Return how well each component separates each label, the clearest first, and sentences about what was left out.

    Parameters
    ----------
    scores : array of shape (samples, components)
    labels : mapping of str to sequence of str
        By what they are called. A sample whose label is empty is left out.
    permutations : int
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from givens.app.report.labels import separations
    >>> scores = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0], [5.0, 0.0]])
    >>> found, _ = separations(scores, {"kind": ["a", "a", "a", "b", "b", "b"]})
    >>> [(row.component, row.measure, round(row.value, 3), row.high) for row in found]
    [(0, 'AUC', 1.0, 'b'), (1, 'AUC', 0.667, 'a')]
    """
    scores = np.asarray(scores, np.float64)
    rows = np.arange(len(scores))
    notes: list[str] = []
    if len(rows) > MOST_SAMPLES:
        rows = np.linspace(0, len(scores) - 1, MOST_SAMPLES).round().astype(int)
        notes.append(f"Computed from {MOST_SAMPLES:,} of the samples, evenly chosen.")
    found: list[Separation] = []
    for name, words in labels.items():
        kept = [k for k in rows.tolist() if words[k].strip()]
        here = [words[k] for k in kept]
        rng = np.random.default_rng(seed)
        reason = unfit(here)
        if reason:
            notes.append(f"'{name}' is left out: {reason}.")
            continue
        if len(kept) < len(rows):
            notes.append(f"'{name}' is empty for {len(rows) - len(kept):,} of the samples.")
        found += separate(scores[kept], name, here, permutations, rng)
    found.sort(key=lambda row: (row.p_any, row.p, -strength(row), row.label, row.component))
    return found, notes


def unfit(labels: Sequence[str]) -> str:
    """Return why labels separate nothing, or an empty string."""
    classes = len(set(labels))
    if classes < 2:
        return "all samples have the same label"
    if as_numbers(labels) is None and (classes > 50 or 2 * classes > len(labels)):
        return f"{classes:,} different labels of {len(labels):,} samples are names rather than classes"
    return ""


def strength(row: Separation) -> float:
    """Return the measure on a scale from 0, nothing, to 1, separated."""
    return 2 * abs(row.value - 0.5) if row.measure == "AUC" else abs(row.value)


def separate(
    scores: np.ndarray, name: str, labels: Sequence[str], permutations: int, rng: np.random.Generator
) -> list[Separation]:
    """Return how well each component separates one label."""
    numbers = as_numbers(labels)
    if numbers is not None:
        measure, codes, classes = "rank correlation", standardised(rankdata(numbers)[:, None])[:, 0], []
        scaled = standardised(rankdata(scores, axis=0))
    else:
        classes = sorted(set(labels))
        codes = np.array([classes.index(label) for label in labels])
        measure = "AUC" if len(classes) == 2 else "correlation ratio"
        scaled = standardised(rankdata(scores, axis=0) if len(classes) == 2 else scores)
    values = statistic(scaled, codes[None], len(classes))[0]
    size = np.abs(values)
    reached, reached_any = np.ones(len(size)), np.ones(len(size))
    # Entries of permuted labels held at a time
    step = max(1, 2_000_000 // (max(1, len(classes)) * len(codes)))
    for begin in range(0, permutations, step):
        shuffled = rng.permuted(np.tile(codes, (min(step, permutations - begin), 1)), axis=1)
        chance = np.abs(statistic(scaled, shuffled, len(classes)))
        # Equal up to rounding counts as reached: few samples have many equal permutations.
        reached += (chance >= size - 1e-12).sum(axis=0)
        reached_any += (chance.max(axis=1, keepdims=True) >= size - 1e-12).sum(axis=0)
    return [
        Separation(
            name,
            k,
            measure,
            float(described_value(values[k], scores[:, k], codes, measure)),
            highest(scores[:, k], codes, classes, values[k]),
            float(reached[k] / (permutations + 1)),
            float(reached_any[k] / (permutations + 1)),
            len(labels),
        )
        for k in range(len(values))
    ]


def standardised(columns: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and length 1; a constant one is zero."""
    centred = columns - columns.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    floor = 1e-12 * np.abs(columns).max(axis=0, initial=0) * np.sqrt(len(columns))
    return np.where(lengths > floor, centred / np.where(lengths > floor, lengths, 1), 0)


def statistic(scaled: np.ndarray, codes: np.ndarray, classes: int) -> np.ndarray:
    """Return what is compared, for each row of permuted codes and each column of standardised scores.

    Numbers (`classes` 0): the correlation. Two classes: the sum of the second class's standardised ranks, which the AUC is a
    linear function of. More: Σ_g (Σ_{i in g} z_i)² / n_g, the correlation ratio.
    """
    if classes in (0, 2):
        return codes.astype(np.float64) @ scaled
    indicators = (codes[:, None, :] == np.arange(classes)[None, :, None]).astype(np.float64)
    sums = indicators @ scaled
    return (sums**2 / indicators.sum(axis=2)[:, :, None]).sum(axis=1)


def described_value(value: float, scores: np.ndarray, codes: np.ndarray, measure: str) -> float:
    """Return the measure that a reader knows: the AUC of the class that scores higher, else the statistic itself."""
    if measure != "AUC":
        return value
    second = codes == 1
    n1 = int(second.sum())
    n0 = len(codes) - n1
    area = (rankdata(scores)[second].sum() - n1 * (n1 + 1) / 2) / (n0 * n1)
    return max(area, 1 - area)


def highest(scores: np.ndarray, codes: np.ndarray, classes: Sequence[str], value: float) -> str:
    """Return the class with the highest scores: of two by the AUC, of more by the mean; of numbers in which direction."""
    if not classes:
        return "large values" if value > 0 else "small values"
    if len(classes) == 2:
        return classes[int(value > 0)]
    means = [scores[codes == k].mean() for k in range(len(classes))]
    return classes[int(np.argmax(means))]

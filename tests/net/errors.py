"""Do the golden nets notice errors that change answers a little? `python -m tests.net.errors [words]`, by hand.

Each error stands in a place of its own: an objective, a kernel, an estimator, the application. In a temporary copy of the tree it
is judged by the golden fits, the golden outputs and the snapshot of the API, first by the cases that should notice it, and by no
other tests. Words choose the errors whose files or descriptions hold one of them. The exit status is 1 if an error is missed.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.net.mutants import FITS, OUTPUTS, copied, judged, noticed

API = "tests/net/test_api.py"
TREE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Error:
    what: str
    path: str  # in src/givens
    before: str  # stands in the file once
    after: str
    net: str  # the one that should notice
    cases: str  # and its cases, as pytest's -k takes them

    @property
    def file(self) -> str:
        return f"src/givens/{self.path}"

    def applied(self, content: str) -> str:
        """The content of the file with the error."""
        if content.count(self.before) != 1:
            raise SystemExit(
                f"{self.file} has {self.before!r} {content.count(self.before)} times: "
                f"name another place for {self.what!r}"
            )
        return content.replace(self.before, self.after)


ERRORS = [
    Error(
        "the slope of varimax has half of its term with κ",
        "objectives/quartic.py",
        "M = M - 4.0 * share * power[:, None] * gram",
        "M = M - 2.0 * share * power[:, None] * gram",
        FITS,
        "minimize and varimax",
    ),
    Error(
        "the pair problem of varimax has half of Σ 2xy",
        "kernels/quartic.py",
        "xx - yy, 2.0 * xy",
        "xx - yy, xy",
        FITS,
        "FactorRotation",
    ),
    Error(
        "whitening divides by one sample less",
        "data/moments.py",
        "upper = self.products() / self.weight",
        "upper = self.products() / (self.weight - 1)",
        FITS,
        "ICA",
    ),
    Error(
        "variances of a mixture leave out the directions without coordinates",
        "mixtures/em.py",
        "d = first.shape[1] + self.beyond",
        "d = first.shape[1]",
        FITS,
        "SphericalMixture",
    ),
    Error(
        "the extra counts of a topic's words are multiplied by the topic",
        "topics/variational.py",
        "counts = found.expected * single\n            counts += smoothing",
        "counts = (found.expected + smoothing) * single",
        FITS,
        "TopicModel",
    ),
    Error(
        "truncated power steps follow R⁻¹DQᵀ, not R⁻¹D²Qᵀ",
        "sparse_pca/truncated_power.py",
        "W = inverse * squares",
        "W = inverse * np.sqrt(squares)",
        FITS,
        "SparsePCA and counts",
    ),
    Error(
        "counts are matched for the least sum of counted squares",
        "sparse_pca/truncated_power.py",
        "linear_sum_assignment(gain, maximize=True)",
        "linear_sum_assignment(gain)",
        FITS,
        "counts and far",
    ),
    Error(
        "the mean of two merged sketches has the weights of each other",
        "data/sketch.py",
        "self.mean = self.mean + gap * (other.weight / total)",
        "self.mean = self.mean + gap * (self.weight / total)",
        FITS,
        "merged",
    ),
    Error(
        "κ of parsimax divides by one more",
        "factors/factor_rotation.py",
        "lambda p, m: p * (m - 1) / (p + m - 2) if",
        "lambda p, m: p * (m - 1) / (p + m - 1) if",
        FITS,
        "parsimax",
    ),
    Error(
        "missing values are filled in with means",
        "app/tables/table.py",
        "np.nanmedian(table.values[:, holed], axis=0)",
        "np.nanmean(table.values[:, holed], axis=0)",
        OUTPUTS,
        "impute",
    ),
    Error(
        "p-values do not count the labels as they are",
        "app/report/labels.py",
        "reached, reached_any = np.ones(len(size)), np.ones(len(size))",
        "reached, reached_any = np.zeros(len(size)), np.zeros(len(size))",
        OUTPUTS,
        "demo",
    ),
]


def main(words: list[str]) -> int:
    errors = [error for error in ERRORS if not words or any(word in str(error) for word in words)]
    contents = [error.applied((TREE / error.file).read_text(encoding="utf-8")).encode() for error in errors]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        clean = copied(TREE, folder)
        for error, content in zip(errors, contents):
            nets = [[error.net, "-k", error.cases], [FITS], [OUTPUTS], [API]]
            said = (judged(clean, error.file, content, net) for net in nets)
            test = next(filter(noticed, said), None)
            missed += test is None
            print(f"{error.file}: {error.what}\n    {f'caught by {test}' if test else 'MISSED'}", flush=True)
    print(f"Of {len(errors)} errors, the golden nets notice {len(errors) - missed}.")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

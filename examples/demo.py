"""A short run: rotate the loadings of the iris measurements until each factor is made of few variables."""

import numpy as np
from sklearn.datasets import load_iris

from givens import minimize
from givens.objectives import Columns


def main() -> None:
    iris = load_iris()
    X = (iris.data - iris.data.mean(axis=0)) / iris.data.std(axis=0)
    _, singular, axes = np.linalg.svd(X, full_matrices=False)
    A = axes[:2].T * (singular[:2] / np.sqrt(len(X)))
    result = minimize(Columns(A, "varimax"))

    print("Loadings of the iris measurements on two factors, before and after varimax rotation:\n")
    for name, before, after in zip(iris.feature_names, A, A @ result.U):
        print(f"  {name:18} {before[0]:7.3f} {before[1]:7.3f}   ->  {after[0]:7.3f} {after[1]:7.3f}")
    print(f"\nvarimax rose from {result.trace.value[0]:.4f} to {result.value:.4f}")
    print(f"{result.message} ({result.sweeps} sweeps, {result.rotations} rotations, {result.seconds:.2f} s)")
    print(f"gradient norm {result.gradient_norm:.1e}, distance from orthogonal {result.orthogonality:.1e}")


if __name__ == "__main__":
    main()

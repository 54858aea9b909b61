"""`givens tensor`: a symmetric tensor as a sum of cubes of orthonormal vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import givens
from givens.app.commands import options as o
from givens.app.commands.results import CommandOutcome, outcome, shares
from givens.app.commands.session import Session, argument, option
from givens.app.commands.session import command as clean
from givens.app.tables import DataError, Table, staged
from givens.app.tables.arrays import load_archive, load_array
from givens.app.tables.sources import find_format
from givens.app.tables.table import numbered
from givens.support.arguments import are


def read_tensor(path: Path) -> np.ndarray:
    """Read an array of three equal dimensions."""
    kind = find_format(path)
    if kind == "npy":
        tensor = load_array(path)
    elif kind == "npz":
        cubes = {key: value for key, value in load_archive(path).items() if value.ndim == 3}
        if len(cubes) != 1:
            raise DataError(f"{path.name} should hold one array of three dimensions; it holds {len(cubes)}")
        tensor = next(iter(cubes.values()))
    else:
        raise DataError(f"a tensor has three dimensions: {path.name} must be .npy or .npz")
    if tensor.ndim != 3 or len(set(tensor.shape)) != 1 or tensor.shape[0] == 0:
        raise DataError(f"{path.name} has shape {tensor.shape}, and not three equal dimensions")
    if tensor.dtype.kind not in "fiub":
        raise DataError(f"{path.name} holds {tensor.dtype}, not real numbers")
    bad = np.argwhere(~np.isfinite(tensor))
    if len(bad):
        where = tuple(int(k) for k in bad[0])
        raise DataError(
            f"{path.name}: {are(len(bad), 'entry', 'entries')} not finite, of {tensor.size:,}, the first at {where}"
        )
    return tensor.astype(np.float64, copy=False)


@clean
def command(
    *,
    file: Path = argument("A d x d x d array: .npy or .npz."),
    rank: int | None = option(None, "Number of terms. Default: d.", min=1),
    symmetrize: bool = option(
        False, "Average the tensor over the six orders of its indices first.", "--symmetrize"
    ),
    seed: int = o.seed_option,
    threads: int | None = o.threads_option,
    session: Session,
) -> None:
    """Decompose a symmetric tensor into weights and orthonormal vectors.

    Writes components.csv (the vectors), summary.json and report.html.

    Example: [bold]givens tensor moments.npy --rank 5 --out results[/]
    """
    with staged(session.out) as files:
        with session.step(f"reading {file.name}"):
            tensor = read_tensor(file)
        session.say(f"read {file.name}: {len(tensor)} x {len(tensor)} x {len(tensor)}")
        with session.step("decomposing"), session.fitting():
            try:
                found = givens.decompose(
                    tensor, rank=rank, symmetrize=symmetrize, random_state=seed, threads=threads
                )
            except ValueError as error:
                raise DataError(str(error).replace("symmetrize=True", "--symmetrize")) from None
        tensor_outcome(session, file, found, len(tensor), rank, symmetrize).write(session, files)


def tensor_outcome(
    session: Session, file: Path, found: Any, d: int, rank: int | None, symmetrize: bool
) -> CommandOutcome:
    """Return the results of a decomposition."""
    weights, factors = np.asarray(found.weights), np.asarray(found.factors)
    share = shares(weights**2)
    residual = float(found.residual)
    return outcome(
        session,
        "tensor",
        Table(None, [], numbered("index", d)),
        file,
        found.result,
        noun="factor",
        weights=factors.T,
        components={
            "share": share,
            "title": "Factors",
            "entry": "entry",
            "weight": "entries",
            "lead": "The tensor is the sum of λ v⊗v⊗v over these vectors v, plus the residual. The percentage is a term's share "
            "of Σ λ².",
        },
        columns={
            "weight": (weights, ".6g"),
            "share": (share, "%"),
        },
        title=f"{len(weights)} terms, residual {residual:.3g}",
        page_title=f"Decomposition of {file.name}",
        subtitle=f"A symmetric {d} × {d} × {d} tensor, {len(weights)} terms",
        facts=[
            ("Terms", str(len(weights)), "λ v⊗v⊗v, with orthonormal v"),
            ("Largest weight", f"{weights.max():.4g}" if len(weights) else "–", "λ of the first term"),
            ("Residual", f"{residual:.3g}", "‖tensor − sum of the terms‖ / ‖tensor‖"),
        ],
        size={"dimension": d},
        settings={"rank": rank, "symmetrize": symmetrize},
        figures={"weights": weights, "residual": residual},
        diagnostics=[
            (
                "Residual",
                f"{residual:.3e}",
                "Large if the tensor is noisy, or has no orthogonal decomposition.",
            ),
        ],
    )

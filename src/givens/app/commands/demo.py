"""`givens demo`: the whole thing on data that ships with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import givens
from givens.app.commands import options as o
from givens.app.commands import sparse_pca
from givens.app.commands.session import Session, option, option_group
from givens.app.commands.session import command as clean
from givens.app.tables import staged
from givens.app.tables.write import write_matrix


def write_table(folder: Path) -> Path:
    """Write the breast cancer table of scikit-learn (569 tumours, 30 measurements) as a CSV file."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    samples = [f"tumour {k + 1}" for k in range(len(data.data))]
    diagnosis = [str(data.target_names[k]) for k in data.target]
    names = [str(name) for name in data.feature_names]
    file = folder / "breast_cancer.csv"
    with staged(folder) as files, files.open(file.name) as stream:
        write_matrix(stream, ["sample", "diagnosis"], names, [([samples, diagnosis], data.data)])
    return file


@option_group
class DemoSession(Session):
    """One run of this command, whose folder holds the data too."""

    out: Path = option(Path("givens-demo"), "Folder for the data and the results.", "--out", "-o")


@clean
def command(session: DemoSession) -> None:
    """Run an example: sparse components of a table of tumours that ships with scikit-learn.

    Writes the table, the results and the report, and prints the address of the report.
    """
    file = write_table(session.out)
    arguments = f"{file} -m 4 --n-nonzero 8 --standardise --labels diagnosis --out {session.out}"
    session.say(f"this is the same as: givens sparse-pca {arguments}")
    source = o.Source(file, labels=["diagnosis"])
    model = givens.SparsePCA(n_components=4, n_nonzero=8, scale=True, random_state=0)
    try:
        sparse_pca.fit(session, source, model, o.Running(), path=True)
    except KeyboardInterrupt as interrupt:
        complete = "complete" in str(interrupt)
        raise KeyboardInterrupt(
            str(interrupt) if complete else f"{file} was written, its results were not"
        ) from None

"""From a file to a report: the command line

A gene-expression table as text (12,600 genes x 102 samples: the prostate data, or simulated data of that shape) is read by us
and by pandas, and analysed by `givens sparse-pca`, in a process of its own, up to the report. Then `givens sparse-pca
--stream` reads a large .npy file, most of whose rows are zeros that take no room on the disk, with blocks of random rows in
between. GIVENS_STREAM_GB sets its size; by default it is 2 GB, and 20 GB takes ten times as long.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks._report import Report

GENES, SAMPLES = 12_600, 102
WIDTH = 2_000  # variables of the stream


def expression(report: Report) -> tuple[np.ndarray, list[str], list[str], str]:
    """Return intensities (genes x samples), genes, labels, and where they are from."""
    path = report.data("singh2002_prostate")
    if path is not None:
        with np.load(path, allow_pickle=False) as data:
            return data["X"].T, data["probes"].tolist(), data["y"].tolist(), "prostate"
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(5, 1.5, (GENES, 1)) + rng.normal(0, 0.5, (GENES, SAMPLES))).round(1)
    return values, [f"gene_{k}" for k in range(GENES)], ["Tumor"] * 52 + ["Normal"] * 50, "simulated"


def write_tsv(path: Path, values: np.ndarray, genes: list[str], labels: list[str]) -> None:
    with open(path, "w") as stream:
        stream.write("\t".join(["probe", *(f"s{k}" for k in range(len(labels)))]) + "\n")
        stream.write("\t".join(["class", *labels]) + "\n")
        for gene, row in zip(genes, values.tolist()):
            stream.write("\t".join([gene, *(f"{value:g}" for value in row)]) + "\n")


def command(*arguments: str) -> tuple[float, float]:
    """Run `givens` in a process of its own; return its seconds by the clock and on the processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "givens", *arguments], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(*arguments: str) -> tuple[float, float]:
    """Run `givens` in a process of its own; return its seconds and the most memory it held, in GB."""
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "givens", *arguments], stderr=subprocess.PIPE)
    most = 0
    status = Path(f"/proc/{child.pid}/status")
    while child.poll() is None:
        # The high-water mark of the process itself, read while it lives.
        lines = (
            [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
            if status.exists()
            else []
        )
        most = max([most, *(int(line.split()[1]) for line in lines)])
        time.sleep(0.05)
    if child.returncode:
        raise RuntimeError(child.stderr.read().decode() if child.stderr else "the command failed")
    return time.perf_counter() - start, most / 1e6


def reading(report: Report, path: Path) -> None:
    import pandas

    from givens.app.tables import read_table

    timings = report.race(
        {
            "givens": lambda: read_table(path, labels="class"),
            "pandas": lambda: pandas.read_csv(path, sep="\t", index_col=0, skiprows=[1]),
            "pandas, exact": lambda: pandas.read_csv(
                path, sep="\t", index_col=0, skiprows=[1], float_precision="round_trip"
            ),
        },
        repeat=7,
        warm=1,
    )
    for name, timing in timings.items():
        report.row(reader=name, seconds=timing.best, megabytes=path.stat().st_size / 1e6)
    exact = np.array_equal(timings["givens"].value.values.T, timings["pandas, exact"].value.to_numpy())
    report.claim(
        "numbers equal those of pandas' exact parser", "to the last bit", "yes" if exact else "no", exact
    )
    ratio = timings["givens"].best / timings["pandas"].best
    report.claim(
        "reading a TSV, beside pandas", "at most 1 times its seconds", f"{ratio:.2f} times", ratio <= 1
    )


def stream_file(path: Path, gigabytes: float) -> int:
    """Make a sparse .npy file: every 64th stretch of 256 rows is random, the rest are holes, which read as zeros."""
    rows = int(gigabytes * 1e9 / (8 * WIDTH))
    header = np.lib.format.open_memmap(path, "w+", np.float64, (rows, WIDTH))
    offset = header.offset
    del header
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(5, WIDTH)) * (rng.random((5, WIDTH)) < 0.02)
    with open(path, "r+b") as stream:
        for start in range(0, rows, 64 * 256):
            block = rng.normal(size=(min(256, rows - start), 5)) * [9, 7, 5, 4, 3] @ directions
            stream.seek(offset + start * WIDTH * 8)
            stream.write((block + 0.1 * rng.normal(size=block.shape)).tobytes())
    return rows


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "expression.tsv"
        values, genes, labels, origin = expression(report)
        write_tsv(path, values, genes, labels)
        reading(report, path)
        arguments = ["sparse-pca", str(path), "-m", "10", "--n-nonzero", "50", "--log2", "--floor", "10"]
        arguments += ["--labels", "class", "--out", str(Path(folder) / "results")]
        command(*arguments)  # fills the cache of compiled code
        seconds, processor = zip(*(command(*arguments) for _ in range(3)))
        report.row(
            step=f"command to report, {origin}", seconds=min(seconds), processor_seconds=min(processor)
        )
        report.claim(
            "12,600 x 102 TSV to report, warm", "under 10 s", f"{min(seconds):.1f} s", min(seconds) < 10
        )

        size = float(os.environ.get("GIVENS_STREAM_GB", "2"))
        source = Path(folder) / "stream.npy"
        rows = stream_file(source, size)
        elapsed, memory = measured(
            "sparse-pca",
            str(source),
            "-m",
            "5",
            "--threshold",
            "0.1",
            "--stream",
            "--quiet",
            "--out",
            str(Path(folder) / "s"),
        )
        report.row(step=f"stream of {rows:,} x {WIDTH:,}", gigabytes=size, seconds=elapsed, memory_gb=memory)
        report.claim(f"a stream of {size:g} GB", "under 1 GB of memory", f"{memory:.2f} GB", memory < 1)

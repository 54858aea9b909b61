"""Benchmarks: one file per problem, each measured in a fresh interpreter, rivals in the same run.

    python -m benchmarks                    everything that this version of the code has not measured yet
    python -m benchmarks --only ica,tensor  these, measured anew
    python -m benchmarks --fresh            everything, measured anew
    python -m benchmarks --list             what there is, and what is done
    python -m benchmarks --publish          write the pages of docs/ from the results of a full run

A benchmark is a module `benchmarks/<name>.py` (no leading underscore) with a docstring, whose first line is
its title, and a function `run(report)`. See `benchmarks._report.Report` for what a report offers:

    def run(report):
        timings = report.race({"givens": ours, "rival": theirs}, repeat=5)
        ratio = timings["rival"].best / timings["givens"].best
        report.row(method="givens", seconds=timings["givens"].best)
        report.row(method="rival", seconds=timings["rival"].best)
        report.claim("faster than the rival", "at least 5 times", f"{ratio:.1f} times", ratio >= 5)
        report.ratio("task in a few words", "rival", ratio, wanted=5)  # a bar of the published chart

A missed target is said plainly and fails nothing; only a benchmark that raises makes the exit code 1.
"""

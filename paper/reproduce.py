"""`python -m paper`: the paper's experiments, one command each.

What is done is kept task by task: Ctrl-C loses at most one, and the same command goes on from there.
"""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from givens.app.commands.session import Session
from givens.app.commands.session import command as clean
from givens.numerics import parallel
from givens.support.imports import require
from paper import EXPERIMENTS, ExperimentSettings, load
from paper.page import page, write_markdown
from paper.runner import ExperimentOutcome, run, write_whole
from paper.verdicts import FAILS, HOLDS

# One member per experiment; mypy wants a literal, but there is one list of experiments only.
Which = StrEnum("Which", {name.replace("-", "_"): name for name in [*EXPERIMENTS, "all"]})  # type: ignore[misc]


app = typer.Typer(name="python -m paper", rich_markup_mode="rich", pretty_exceptions_show_locals=False)


@app.command()
@clean
def command(
    which: Annotated[Which, typer.Argument(help="Which experiment.", show_default=False)],
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Small data and few repetitions: a few minutes for all experiments."),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the real data. Without it, data of the same shape are simulated.",
            envvar="GIVENS_DATA",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of repetitions. Default: 20; fewer with --quick.", show_default=False
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path("reproduced"),
    markdown: Annotated[
        Path | None,
        typer.Option(help="Folder for a Markdown page with everything, and its figures.", show_default=False),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many tasks run at the same time. Default: the number of cores.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Repeat the paper's experiments: draw its figures, and compare its claims with what was measured."""
    require("matplotlib", extra="plot")
    session = Session(quiet=quiet)
    if data is not None and not data.is_dir():
        raise typer.BadParameter(f"there is no folder {data}", param_hint="--data")
    settings = ExperimentSettings(quick=quick, seeds=seeds, data=data, threads=threads)
    names = list(EXPERIMENTS) if which.value == "all" else [which.value]
    outcomes: list[ExperimentOutcome] = []
    failures: dict[str, str] = {}
    for name in names:
        try:
            outcomes.append(_one(session, name, settings, out / name))
            _show(session, outcomes[-1])
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "finished tasks are kept; the same command continues from there"
            ) from None
        except Exception as error:  # one broken experiment must not take the others with it
            failures[name] = f"{type(error).__name__}: {error}"
            session.console.print(f"[bold red]error:[/] {name}: {escape(failures[name])}", soft_wrap=True)
    if which.value == "all":
        write_whole(out / "index.html", page(outcomes, failures).encode())
        session.console.print(
            f"All of it: [bold cyan]{(out / 'index.html').resolve().as_uri()}[/]", soft_wrap=True
        )
    if markdown is not None:
        write_markdown(markdown, outcomes, failures)
    if failures:
        raise typer.Exit(1)


def _one(session: Session, name: str, settings: ExperimentSettings, folder: Path) -> ExperimentOutcome:
    experiment = load(name)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=session.console,
        transient=True,
        disable=not session.interactive,
    )
    with bar:
        task = bar.add_task(name, total=1.0)
        return run(
            experiment,
            settings,
            folder,
            lambda done, share: bar.update(task, advance=share, description=f"{name}: {done}"),
            parallel.count(settings.threads),
        )


def _show(session: Session, outcome: ExperimentOutcome) -> None:
    table = Table(title=outcome.experiment.title, caption=f"{outcome.source} · {time.strftime('%Y-%m-%d')}")
    for column in ("claim", "measured", ""):
        table.add_column(column)
    for claim in outcome.claims:
        colour = {HOLDS: "green", FAILS: "dark_orange"}.get(claim.verdict, "yellow")
        table.add_row(escape(claim.statement), escape(claim.measured), f"[{colour}]{claim.verdict}[/]")
    session.console.print(table)
    session.console.print(
        f"Wrote the figure, the numbers and how they were made to {escape(str(outcome.folder))}"
    )

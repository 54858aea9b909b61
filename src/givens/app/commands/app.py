"""The commands, each in a file of its own."""

from __future__ import annotations

import typer

import givens
from givens.app.commands import compare, demo, ica, mixture, rotate, sparse_pca, tensor, topics
from givens.app.commands.session import option

app = typer.Typer(
    name="givens",
    no_args_is_help=True,
    rich_markup_mode="rich",
    # A bug's own traceback, short; bad input never gets this far.
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"givens {givens.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = option(
        False, "Show the version and exit.", "--version", callback=_version, is_eager=True
    ),
) -> None:
    """Sparse PCA, independent components, factor rotation, clusters and topics: from a table to a report."""


app.command("sparse-pca")(sparse_pca.command)
app.command("mixture")(mixture.command)
app.command("tensor")(tensor.command)
app.command("topics")(topics.command)
app.command("ica")(ica.command)
app.command("rotate")(rotate.command)
app.command("compare")(compare.command)
app.command("demo")(demo.command)

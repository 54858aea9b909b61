"""What every command shares: where words go, how it ends, how results are written.

Progress, notes and the final table go to standard error, so that standard output holds nothing but what
`--json` was asked for. Exit codes: 0 done, 1 the data or the place for the results will not do, 2 the
command was not understood or its options contradict each other (`OptionError`), 130 Ctrl-C.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import shlex
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import IO, Any, dataclass_transform, get_type_hints

import rich
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from typer.models import ParameterInfo

import givens
from givens.app.commands.stopping import stop_at_once
from givens.app.report import Report
from givens.app.tables import DataError, OptionError
from givens.app.tables.table import listed
from givens.app.tables.write import Staged, plain, write_json
from givens.support.arguments import DominantFeatureWarning


def option(default: Any, help: str, *flags: str, panel: str | None = None, **more: Any) -> Any:
    """An option of a command, as the default of a parameter or of a field of `option_group`; `...` is a required one."""
    return typer.Option(default, *flags, help=help, rich_help_panel=panel, **more)


def argument(help: str) -> Any:
    """A file or folder that a command needs, as the default of a parameter or of a field."""
    return typer.Argument(..., help=help, show_default=False)


results = functools.partial(option, panel="Results")


@dataclass_transform()
def option_group(group: type) -> type:
    """Make a dataclass of options that several commands share."""
    types = get_type_hints(group)
    for name, value in list(vars(group).items()):
        if isinstance(value, ParameterInfo):
            default = MISSING if value.default is ... else value.default
            setattr(group, name, field(default=default, metadata={"option": (types[name], value)}))
    return dataclass(group)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Turn what a user can mend into one sentence and an exit code.

    A parameter whose type is a dataclass, such as `Session`, stands for an option for each of its fields that `__init__` takes.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        found = [parameter]
        if is_dataclass(parameter.annotation):
            found = _options(parameter.annotation)
            groups[name] = parameter.annotation, [option.name for option in found]
        parameters += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in found]

    @functools.wraps(function)
    def wrapped(**given: Any) -> None:
        try:
            with interruptible():
                for name, (group, names) in groups.items():
                    given[name] = group(**{option: given.pop(option) for option in names})
                function(**given)
        except KeyboardInterrupt as interrupt:
            _fail("; ".join(filter(None, ["stopped", str(interrupt)])), 130)
        except OptionError as error:
            _fail(" ".join(str(error).split()), 2)
        # What the estimators raise for data or parameters that will not do: one sentence each, by the library's own rule.
        except (DataError, ValueError, ImportError, MemoryError, OSError) as error:
            text = " ".join(str(error).split()) or "there is not enough memory; try --stream"
            _fail(text, 1)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {option.name: option.annotation for option in parameters}
    return wrapped


@contextmanager
def checking_options() -> Iterator[None]:
    """Make an OptionError of what an estimator says about its parameters, in a check that has not seen the data."""
    try:
        yield
    except ValueError as error:
        raise OptionError(str(error)) from None


def refuse_contradictions(sentences: dict[str, bool]) -> None:
    """Refuse options with the first of the sentences that is true of them."""
    for sentence, wrong in sentences.items():
        if wrong:
            raise OptionError(sentence)


def _options(group: Any) -> list[inspect.Parameter]:
    """The fields of a dataclass as parameters of a function."""
    parameters = []
    for one in fields(group):
        if one.init:
            annotation, default = one.metadata["option"]
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(one.name, kind, default=default, annotation=annotation))
    return parameters


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C be a KeyboardInterrupt where there is something to clean up, if it would end the process otherwise."""
    if signal.getsignal(signal.SIGINT) is not stop_at_once:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, stop_at_once)


def shown(text: str) -> str:
    """Return text from a file as a terminal may show it: control characters spelled out, markup taken literally.

    >>> shown("a\\x1b[2Jb"), shown("[bold]")
    ('a\\\\x1b[2Jb', '\\\\[bold]')
    """
    plain_text = "".join(
        letter
        if letter == "\n" or letter.isprintable()
        else letter.encode("unicode_escape", "surrogatepass").decode()
        for letter in text
    )
    return escape(plain_text)


def _fail(text: str, code: int) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {shown(text)}")
    raise typer.Exit(code)


def command_line() -> str:
    """Return what was typed, so that it can be typed again."""
    return shlex.join(["givens", *sys.argv[1:]])


@option_group
class Session:
    """One run of a command, and the options for its results.

    Attributes
    ----------
    out : Path
        Folder for the results.
    excel_safe : bool
        Write names so that no spreadsheet takes them for formulas.
    as_json : bool
        Write the summary to standard output.
    quiet : bool
        Print nothing but errors.
    """

    out: Path = results(Path("results"), "Folder for the results.", "--out", "-o")
    excel_safe: bool = field(default=False, init=False)
    as_json: bool = results(False, "Print the summary as JSON to standard output.", "--json")
    quiet: bool = results(False, "Print nothing but errors.", "--quiet", "-q")

    def __post_init__(self) -> None:
        self.started = time.perf_counter()
        self.warnings: list[str] = []
        self.variables: list[str] = []  # of the table that is fitted, for warnings that name one
        self.compiled = 0.0  # seconds of the fit that went into compiling
        self.told = False  # that something is being compiled
        self.seconds_compiling = 0.0  # in all, of the curve in the report too
        self.kept = True  # what was compiled, for later runs
        # The estimators' own progress bars use Rich's global console: standard output is not theirs.
        rich.reconfigure(stderr=True)
        self.console = Console(stderr=True, quiet=self.quiet, highlight=False)

    @property
    def interactive(self) -> bool:
        """Whether someone is watching."""
        return not self.quiet and self.console.is_terminal

    @property
    def seconds(self) -> float:
        """Since the command began."""
        return time.perf_counter() - self.started

    def say(self, text: str) -> None:
        """Say a sentence."""
        self.console.print(f"[dim]·[/] {shown(text)}", soft_wrap=True)

    @contextmanager
    def step(self, text: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
        """Show a step with a bar, or a spinner where its length is unknown; yields how to advance it."""
        progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            *([BarColumn(), TimeRemainingColumn()] if total else []),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.interactive,
        )
        with progress, self.listening():
            task = progress.add_task(shown(text), total=total)
            yield lambda amount: progress.update(task, advance=amount)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Collect the estimators' warnings, to be said once, in the report too."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            if isinstance(warning.message, DominantFeatureWarning):
                self.warn(self.dominant(warning.message))
            elif issubclass(warning.category, UserWarning):
                self.warn(" ".join(str(warning.message).split()))

    def dominant(self, warning: DominantFeatureWarning) -> str:
        """Return the warning of a variable with nearly all of the variance, with its name and the options of commands."""
        return (
            f"the variable '{self.variables[warning.feature]}' has {100 * warning.share:.1f} % of the variance of all "
            f"{len(self.variables):,}, so the components describe little else: --standardise gives all variables the same "
            "variance; a total or a number of rows should be left out of the table (--drop leaves out a column)"
        )

    def warn(self, text: str) -> None:
        """Say what the reader has to know, once, in the report too."""
        if text not in self.warnings:
            self.warnings.append(text)
            self.console.print(f"[yellow]warning:[/] {shown(text)}", soft_wrap=True)

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """Listen to the fit, and find out how much of its time went into compiling."""
        with self.listening(), givens.progress(self.interactive), self.compiling() as seconds:
            yield
            self.compiled = seconds()

    @contextmanager
    def compiling(self) -> Iterator[Callable[[], float]]:
        """Say, once in a session, that code is being compiled; yield a function that tells for how many seconds it has been."""
        from givens.kernels import compile

        with compile.compiling(self._tell) as seconds:
            try:
                yield seconds
            finally:
                self.seconds_compiling += seconds()

    def _tell(self, kept: bool) -> None:
        if not self.told:
            self.told, self.kept = True, kept
            what = (
                "compiling what this machine has not compiled yet, and keeping it for later runs"
                if kept
                else "compiling, in every run, since the compiled code cannot be stored"
            )
            self.say(f"{what}; this may take longer than the fit itself")

    def finish(self, summary: dict[str, object], table: RichTable, files: list[Path]) -> None:
        """Say what came out and where it is."""
        if self.as_json:
            print_all(json.dumps(plain(summary), indent=2, ensure_ascii=False, allow_nan=False))
        self.console.print(table)
        if summary.get("method"):
            self.console.print(f"What ran: {shown(str(summary['method']))}")
        report = self.out / "report.html"
        others = escape(", ".join(path.name for path in files if path != report))
        self.console.print(
            f"Wrote {others} and the report to {shown(str(self.out))} ({self.seconds:.1f} s). Open:"
        )
        self.console.print(f"  {report.resolve().as_uri()}", soft_wrap=True, style="bold cyan", markup=False)
        written = {path.name for path in files}
        tables = ("components", "pairs", "rotation", "scores", "selection", "unmixing")  # of all commands
        old = [
            f"{name}.csv"
            for name in tables
            if f"{name}.csv" not in written and (self.out / f"{name}.csv").exists()
        ]
        if old:
            self.say(f"{listed(old)} in {self.out}: from an earlier run, not from this one")


@option_group
class TableSession(Session):
    """One run of a command that writes names from a table."""

    excel_safe: bool = results(
        False,
        "Write an apostrophe before names that a spreadsheet would read as formulas (= + - @).",
        "--excel-safe",
    )


def print_all(text: str) -> None:
    """Print to standard output; whoever has stopped reading there misses the rest, which is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python would try once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def summary_head(analysis: str, source: Path, notes: list[str]) -> dict[str, object]:
    """Return what every summary begins with."""
    return {
        "givens": givens.__version__,
        "analysis": analysis,
        "command": command_line(),
        "file": str(source),
        "notes": notes,
    }


def write_results(
    summary: dict[str, object], report: Report, tables: dict[str, Callable[[IO[str]], None]], files: Staged
) -> list[Path]:
    """Write tables, summary and report beside the files that already wait; then all of them appear."""
    for name, write in tables.items():
        with files.open(name) as stream:
            write(stream)
    with files.open("summary.json") as stream:
        write_json(stream, summary)
    with files.open("report.html") as stream:
        stream.write(report.html())
    return files.publish()

from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

from paper import EXPERIMENTS, ExperimentSettings, load
from paper.drawing import new_figure
from paper.experiment import Claim, Experiment, Task
from paper.page import page
from paper.provenance import code, sources
from paper.reproduce import app
from paper.runner import run
from paper.verdicts import FAILS, HOLDS, UNCLEAR


class Toy(Experiment):
    """Three tasks, and a list of which were really done."""

    name = "toy"
    title = "A <toy>"
    about = "Nothing."
    measured = "paper.measure.task"

    def __init__(self) -> None:
        self.done: list[int] = []
        self.broken = False

    def source(self, settings):
        return "no data"

    def tasks(self, settings):
        return [Task(f"task-{k}", lambda k=k: self._task(k)) for k in range(3)]

    def _task(self, k):
        if self.broken and k == 2:
            raise KeyboardInterrupt
        self.done.append(k)
        return [{"k": k, "square": k * k}, {"k": -k, "extra": 0.5}]

    def figure(self, rows, settings):
        figure, ax = new_figure(3, 2)
        ax.plot([row["k"] for row in rows])
        return figure

    def claims(self, rows, settings):
        return [
            Claim("a < b", "b & c; d", HOLDS),
            Claim("no", "never", FAILS),
            Claim("who knows", "-", UNCLEAR, "ours"),
        ]


def ignore(name, share):
    pass


def test_everything_is_written(tmp_path):
    shares = []
    outcome = run(Toy(), ExperimentSettings(), tmp_path / "toy", lambda name, share: shares.append(share))
    assert sum(shares) == pytest.approx(1)
    names = {path.name for path in (tmp_path / "toy").iterdir()}
    assert names == {"figure.svg", "figure.png", "numbers.csv", "claims.csv", "made.json", "tasks"}
    with open(tmp_path / "toy" / "numbers.csv") as file:
        rows = list(csv.DictReader(file))
    assert rows[1] == {"k": "0", "square": "", "extra": "0.5"}
    made = json.loads((tmp_path / "toy" / "made.json").read_text())
    assert made["data"] == "no data"
    assert made["command"] == "python -m paper toy"
    assert {"numpy", "numba", "givens"} <= set(made["versions"])
    html = page([outcome], {"other": "ValueError: <x>"})
    assert "A &lt;toy&gt;" in html
    assert "a &lt; b" in html
    assert "b &amp; c;<br>d" in html
    assert "does not hold" in html
    assert "ValueError: &lt;x&gt;" in html
    assert html.count("<svg") == 1
    assert "src=" not in html


def test_an_interrupted_run_goes_on_behind_what_is_done(tmp_path):
    toy = Toy()
    toy.broken = True
    with pytest.raises(KeyboardInterrupt):
        run(toy, ExperimentSettings(), tmp_path, ignore)
    assert toy.done == [0, 1]
    toy.broken = False
    outcome = run(toy, ExperimentSettings(), tmp_path, ignore)
    assert toy.done == [0, 1, 2]
    assert len(outcome.rows) == 6


def test_the_same_numbers_make_the_same_figure(tmp_path):
    for folder in ("one", "two"):
        run(Toy(), ExperimentSettings(), tmp_path / folder, ignore)
    one, two = ((tmp_path / folder / "figure.svg").read_bytes() for folder in ("one", "two"))
    assert one == two


def test_other_settings_start_afresh(tmp_path):
    toy = Toy()
    run(toy, ExperimentSettings(), tmp_path, ignore)
    run(toy, ExperimentSettings(threads=2, seeds=9), tmp_path, ignore)
    assert toy.done == [0, 1, 2], "neither threads nor more repetitions change the number of a task"
    run(toy, ExperimentSettings(quick=True), tmp_path, ignore)
    assert toy.done == [0, 1, 2, 0, 1, 2]


def test_other_code_starts_afresh(tmp_path, monkeypatch):
    toy = Toy()
    run(toy, ExperimentSettings(), tmp_path, ignore)
    monkeypatch.setattr("paper.runner.code", lambda module: "changed")
    run(toy, ExperimentSettings(), tmp_path, ignore)
    assert toy.done == [0, 1, 2, 0, 1, 2]


def test_the_hash_is_of_what_decides_the_numbers(tmp_path, monkeypatch):
    files = {
        "__init__.py": "",
        "minimize.py": "from givens.kernels import rotate\n",
        "kernels/__init__.py": "",
        "kernels/rotate.py": '"""Turns."""\n\nx = 1\n',
        "measure.py": "import numpy\n\n\ndef f():\n    from givens.minimize import run\n",
        "page.py": "x = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("paper.provenance.ROOTS", {"givens": tmp_path})
    names = [path.relative_to(tmp_path).as_posix() for path in sources("givens.measure")]
    assert names == ["kernels/__init__.py", "kernels/rotate.py", "measure.py", "minimize.py"]
    before = code("givens.measure")
    (tmp_path / "page.py").write_text("x = 2\n")
    (tmp_path / "kernels" / "rotate.py").write_text('"""Rotates."""\n\nx = (\n    1\n)  # one\n')
    assert code("givens.measure") == before, "neither what shows results nor words and layout"
    (tmp_path / "kernels" / "rotate.py").write_text("x = 2\n")
    assert code("givens.measure") != before


def test_the_page_for_a_site_says_all_and_nothing_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr("paper.reproduce.load", lambda name: Toy())
    folder = tmp_path / "secret"
    folder.mkdir()
    arguments = [
        "convergence",
        "--data",
        str(folder),
        "--threads",
        "1",
        "--out",
        str(tmp_path / "out"),
    ]
    result = CliRunner().invoke(app, [*arguments, "--markdown", str(tmp_path / "site")])
    assert result.exit_code == 0
    text = (tmp_path / "site" / "results.md").read_text()
    assert "Of 2 claims about the paper's algorithms: 1 hold, 1 do not hold." in text
    assert "Of 1 claims about ours: 1 cannot be told." in text
    assert "Made with fewer than 20 repetitions: toy (1)." in text
    assert "Not run for this page: brain, " in text
    assert "| a < b | b & c;<br>d | holds |" in text
    assert "![A <toy>](toy.png)" in text
    assert (tmp_path / "site" / "toy.png").exists()
    made = (tmp_path / "out" / "convergence" / "made.json").read_text()
    assert "--data" not in made, "it used none"
    assert "secret" not in text + made


def test_a_failing_experiment_is_reported_and_the_others_go_on(tmp_path, monkeypatch):
    class Broken(Toy):
        def tasks(self, settings):
            raise ValueError("out of luck")

    made = {"convergence": Broken(), "toy": Toy()}
    monkeypatch.setattr("paper.reproduce.EXPERIMENTS", made)
    monkeypatch.setattr("paper.reproduce.load", made.__getitem__)
    result = CliRunner().invoke(app, ["all", "--threads", "1", "--out", str(tmp_path)])
    assert result.exit_code == 1
    html = (tmp_path / "index.html").read_text()
    assert "out of luck" in html
    assert "A &lt;toy&gt;" in html


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_says_what_it_is(name):
    experiment = load(name)
    assert experiment.name == name
    assert experiment.title
    assert experiment.about
    tasks = experiment.tasks(ExperimentSettings(quick=True))
    assert len({task.name for task in tasks}) == len(tasks)
    assert len(experiment.tasks(ExperimentSettings(quick=True, seeds=1))) <= len(tasks)

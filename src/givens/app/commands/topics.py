"""`givens topics`: topics of documents, from a table of counts or a folder of text files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy import sparse

import givens
from givens.app.commands import options as o
from givens.app.commands.results import (
    CommandOutcome,
    Described,
    numbered,
    outcome,
    percent,
    summary_table,
    weight_files,
    with_labels,
)
from givens.app.commands.session import Session
from givens.app.commands.session import command as clean
from givens.app.report import Report
from givens.app.report.views import components_view, scores_view
from givens.app.tables import DataError, OptionError, Table, staged
from givens.app.tables.write import Staged

TEXT = "Reading a folder of text"


@dataclass
class CountsOrTexts(o.Source):
    """A file or folder and the options for reading it; counts are taken as they are."""

    file: Annotated[
        Path,
        typer.Argument(
            help="A table of counts (CSV or TSV, also .gz; .parquet, .npy, .npz, .mtx, .h5ad), or a folder of .txt files.",
            show_default=False,
        ),
    ]
    impute: None = field(default=None, init=False)
    log2: bool = field(default=False, init=False)
    floor: None = field(default=None, init=False)


@clean
def command(
    *,
    topics: Annotated[int, typer.Option("--topics", "-k", help="Number of topics.", min=1)],
    alpha0: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Sum of the Dirichlet parameters; 0 gives every document one topic. Default: 1, and then learned.",
            rich_help_panel=o.FITTING,
            show_default=False,
        ),
    ] = None,
    refine: Annotated[
        int,
        typer.Option(
            min=0,
            help="Largest number of variational passes after the fit to the moments.",
            rich_help_panel=o.FITTING,
        ),
    ] = 10,
    min_documents: Annotated[
        int,
        typer.Option(
            min=1, help="Leave out words that occur in fewer documents than this.", rich_help_panel=TEXT
        ),
    ] = 2,
    stop_words: Annotated[
        bool, typer.Option("--stop-words", help="Leave out English stop words.", rich_help_panel=TEXT)
    ] = False,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            help="A text file with the words of the table, one per line, for formats without names (.mtx, .npz, .npy).",
            show_default=False,
        ),
    ] = None,
    source: CountsOrTexts,
    run: o.Running,
    session: Session,
) -> None:
    """Find topics of documents: latent Dirichlet allocation, from moments and variational passes.

    Writes components.csv (the probabilities of each topic's words), scores.csv (the topics of each document), summary.json and
    report.html.

    Example: [bold]givens topics texts/ -k 10 --stop-words --out results[/]
    """  # fmt: skip
    model = givens.TopicModel(topics, alpha0=alpha0, refine=refine, **run.parameters(session))
    with staged(session.out) as files:
        if run.cluster is not None:
            found = fit_on_cluster(session, source, model, vocabulary, run.cluster, files)
        else:
            found = fit_in_memory(
                session, source, model, counts(session, source, vocabulary, min_documents, stop_words)
            )
        found.write(session, files)


def counts(
    session: Session, source: o.Source, vocabulary: Path | None, min_documents: int, stop_words: bool
) -> Table:
    """Return the word counts of a table, or of a folder of texts."""
    file = source.file
    if not file.is_dir():
        table = source.table(session, nouns=("document", "word"))
        if vocabulary is None:
            return table
        return replace(table, variables=read_vocabulary(vocabulary, table.values.shape[1]))
    if vocabulary is not None:
        raise OptionError(f"--vocabulary is for tables, but {file} is a folder of texts: leave it out")
    source.refuse_row_options("a folder of texts")
    with session.step(f"counting the words of {file.name}"):
        table = read_texts(file, min_documents, stop_words)
    for note in table.notes:
        session.say(note)
    return table


def fit_in_memory(session: Session, source: o.Source, model: Any, table: Table) -> CommandOutcome:
    """Fit the model to a table of counts."""
    model.vocabulary = table.variables
    with session.step(f"fitting {model.n_topics} topics"), session.fitting():
        model.fit(table.values)
    shares = np.asarray(model.transform(table.values))
    data = Described.of(source.file, table)
    found = topics_outcome(session, data, table, shares, model, table.values, main_topics(shares))
    return found.with_scores(table, shares, "topic", assigned(shares))


def main_topics(shares: np.ndarray) -> np.ndarray:
    """Return of how many documents each topic is the largest.

    >>> main_topics(np.array([[0.1, 0.9], [0.7, 0.3], [0.2, 0.8]]))
    array([1, 2])
    """
    return np.bincount(shares.argmax(axis=1), minlength=shares.shape[1])


def assigned(shares: np.ndarray) -> dict[str, list[str]]:
    """Return the largest topic of each document, under the heading that it has in scores.csv."""
    return {"topic": [f"topic {k + 1}" for k in shares.argmax(axis=1)]}


def fit_on_cluster(
    session: Session, source: o.Source, model: Any, vocabulary: Path | None, address: str, files: Staged
) -> CommandOutcome:
    """Fit the model where the chunks of a store are."""
    from givens.app.commands.cluster import score, store_on_cluster

    nouns = ("document", "word")
    with store_on_cluster(session, source, address, model.threads, nouns=nouns) as store:
        if vocabulary is not None:
            store.variables = read_vocabulary(vocabulary, store.X.shape[1])
        model.vocabulary = store.variables
        with session.fitting():
            model.fit(store.X)
        documents = np.zeros(model.n_topics, dtype=int)

        def seen(part: np.ndarray) -> None:
            documents[:] += main_topics(part)

        scores = model.transform(store.X)
        scored = score(session, source, store, scores, "topic", files, extra=assigned, seen=seen)
        return topics_outcome(session, scored.data, scored.table, scored.scores, model, store.X, documents)


def read_texts(folder: Path, min_documents: int, stop_words: bool) -> Table:
    """Count the words of the text files of a folder, in the order of their names."""
    from sklearn.feature_extraction.text import CountVectorizer

    texts = sorted(path for path in folder.rglob("*.txt") if path.is_file())
    if not texts:
        raise DataError(f"{folder} holds no .txt files: give a folder of texts, or a table of counts")
    for path in texts:
        with open(path, "rb") as stream:
            if stream.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                raise DataError(f"{path.relative_to(folder)} is UTF-16 text: save it as UTF-8")
    vectorizer = CountVectorizer(
        input="filename", decode_error="replace", stop_words="english" if stop_words else None
    )
    try:
        counts = sparse.csr_matrix(vectorizer.fit_transform([str(path) for path in texts]))
    except ValueError as error:
        raise DataError(f"the files of {folder} hold no words that can be counted: {error}") from None
    documents = np.bincount(counts.indices, minlength=counts.shape[1])
    kept = np.flatnonzero(documents >= min_documents)
    if not len(kept):
        raise DataError(
            f"no word occurs in {min_documents} of the {len(texts)} files of {folder}: lower --min-documents"
        )
    words = vectorizer.get_feature_names_out()
    left = counts.shape[1] - len(kept)
    return Table(
        values=counts[:, kept].astype(np.float64),
        samples=[str(path.relative_to(folder)) for path in texts],
        variables=[str(words[v]) for v in kept],
        notes=[
            f"counted {len(kept):,} words of {len(texts):,} text files"
            + (f"; left out {left:,} that occur in fewer than {min_documents}" if left else "")
        ],
    )


def read_vocabulary(file: Path, number: int) -> list[str]:
    """The words of a file, one a line, of which there must be `number`."""
    try:
        words = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the vocabulary {file} cannot be read: {error}") from None
    words = [word.strip() for word in words]
    if len(words) != number:
        raise DataError(
            f"the vocabulary {file} has {len(words):,} lines, but the table has {number:,} words: give one line per word"
        )
    return words


def topic_map(topics: np.ndarray) -> np.ndarray:
    """Positions of topics in the plane: classical scaling of their Hellinger distances.

    >>> topic_map(np.eye(3)).shape
    (3, 2)
    """
    roots = np.sqrt(topics)
    left, values, _ = np.linalg.svd(roots - roots.mean(axis=0), full_matrices=False)
    positions = np.zeros((len(topics), 2))
    size = min(2, len(values))
    positions[:, :size] = left[:, :size] * values[:size]
    return positions


def topics_outcome(
    session: Session,
    data: Described,
    table: Table,
    shares: np.ndarray,
    model: Any,
    values: Any,
    documents: np.ndarray,
) -> CommandOutcome:
    """Return the results of a fitted TopicModel.

    `table` and `shares` are of the documents that the page shows, `values` the counts of all, in memory or on Dask, `documents`
    says of how many each topic is the largest.
    """
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    k = len(topics)
    coherence = (
        model.coherence(values, min(10, topics.shape[1])) if topics.shape[1] > 1 else np.full(k, np.nan)
    )
    perplexity = float(model.perplexity(values))
    words = model.top_words(min(10, topics.shape[1]))
    names = numbered("topic", k)
    titled = [f"topic {i + 1}: {', '.join(row[:3])}" for i, row in enumerate(words)]
    positions = topic_map(topics)
    mean_coherence = f"{np.nanmean(coherence):.3f}" if np.isfinite(coherence).any() else "–"
    report = Report(
        title=f"Topics of {data.file.name}",
        subtitle=f"{data.samples:,} documents × {len(data.variables):,} words, {k} topics",
        facts=[
            ("Topics", str(k), f"the largest has {percent(float(model.weights_.max()))} of the words"),
            ("Perplexity", f"{perplexity:,.0f}", "of these documents; lower is better"),
            ("Coherence", mean_coherence, "mean NPMI of the ten most probable words of a topic"),
            ("α0", f"{float(model.alpha_.sum()):.3g}", "the smaller, the fewer topics per document"),
            ("Documents", f"{data.samples:,}", data.labels),
        ],
        notes=data.notes,
        components=components_view(
            topics,
            data.variables,
            share=model.weights_,
            title="Topics",
            noun="topic",
            weight="probabilities",
            entry="word",
            variable="word",
            lead="The words of each topic and their probabilities. The percentage is the topic's mean share of a document. "
            "Search for a word to see it in every topic.",
        ),
        scores=scores_view(
            np.hstack([shares @ positions, shares]),
            table.samples,
            axes=["Map, first direction", "Map, second direction", *(f"Share of {name}" for name in titled)],
            labels=with_labels(table, "largest topic", assigned(shares)["topic"]),
            total=data.samples,
            marks=[(str(i + 1), np.append(positions[i], np.eye(k)[i])) for i in range(k)],
            lead="A map of the documents. Numbers mark the topics: two topics are near each other if they share words, and a "
            "document lies between the topics that it is made of. Choose other axes to see the shares of single topics.",
        ),
        diagnostics=[
            ("Unexplained share of the third moment", f"{model.residual_:.3f}", RESIDUAL),
            ("Variational passes", str(model.n_iter_), "After the moments; each raises a lower bound of the likelihood."),
        ],
    )  # fmt: skip
    return outcome(
        session,
        report,
        "topics",
        data.file,
        model.result_,
        size={"documents": data.samples, "words": len(data.variables)},
        settings={key: value for key, value in model.get_params().items() if key != "vocabulary"},
        figures={
            "topics": [
                {
                    "name": names[i],
                    "weight": model.weights_[i],
                    "alpha": model.alpha_[i],
                    "coherence": None if np.isnan(coherence[i]) else coherence[i],
                    "documents": int(documents[i]),
                    "words": words[i],
                }
                for i in range(k)
            ],
            "perplexity": perplexity,
            "alpha0": float(model.alpha_.sum()),
            "passes": model.n_iter_,
            "converged": model.converged_,
        },
        table=summary_table(
            f"{k} topics of {data.samples:,} documents",
            "topic",
            {
                "share": [percent(float(weight)) for weight in model.weights_],
                "documents": [f"{number:,}" for number in documents],
                "coherence": ["–" if np.isnan(value) else f"{value:.2f}" for value in coherence],
            },
            "most probable words",
            [", ".join(row[:8]) for row in words],
        ),
        files=weight_files({"components.csv": topics}, data.variables, names),
    )


RESIDUAL = "Tends to 0 for many documents that follow the model; noise and other structure raise it."

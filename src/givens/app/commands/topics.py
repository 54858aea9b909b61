"""`givens topics`: topics of documents, from a table of counts or a folder of text files."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

import numpy as np
from scipy import sparse

import givens
from givens.app.commands import options as o
from givens.app.commands.cluster import opened
from givens.app.commands.results import CommandOutcome, outcome, percent, records, size_line, size_of
from givens.app.commands.samples import Scored
from givens.app.commands.session import Session, argument, option, option_group
from givens.app.commands.session import command as clean
from givens.app.report.views import scores_view
from givens.app.tables import DataError, OptionError, ReadingOptions, Table, staged
from givens.app.tables.table import numbered

DOCUMENT_NOUNS = ("document", "word")


@option_group
class CountsOrTexts(o.Source):
    """A file or folder and the options for reading it; counts are taken as they are."""

    file: Path = argument(
        "A table of counts (CSV or TSV, also .gz; .parquet, .npy, .npz, .mtx, .h5ad), or a folder of .txt files."
    )
    impute: None = field(default=None, init=False)
    log2: bool = field(default=False, init=False)
    floor: None = field(default=None, init=False)


@clean
def command(
    *,
    topics: int = option(..., "Number of topics.", "--topics", "-k", min=1),
    alpha0: float | None = o.fitting(
        None,
        "Sum of the Dirichlet parameters; 0 gives every document one topic. Default: 1, and then learned.",
        min=0,
    ),
    max_iter: int = o.fitting(
        100, "Largest number of variational passes after the fit to the moments.", min=0
    ),
    min_documents: int = option(
        2, "Leave out words that occur in fewer documents than this.", min=1, panel="Reading a folder of text"
    ),
    stop_words: bool = option(
        False, "Leave out English stop words.", "--stop-words", panel="Reading a folder of text"
    ),
    vocabulary: Path | None = option(
        None,
        "A text file with the words of the table, one per line, for formats without names (.mtx, .npz, .npy).",
    ),
    source: CountsOrTexts,
    run: o.Running,
    session: Session,
) -> None:
    """Find topics of documents: latent Dirichlet allocation, from moments and variational passes.

    Writes components.csv (the probabilities of each topic's words), scores.csv (the topics of each document), summary.json and
    report.html.

    Example: [bold]givens topics texts/ -k 10 --stop-words --out results[/]
    """  # fmt: skip
    model = givens.TopicModel(topics, alpha0=alpha0, max_iter=max_iter, **run.parameters(session))
    texts = source.file.is_dir() and run.cluster is None
    if texts and vocabulary is not None:
        raise OptionError(f"--vocabulary is for tables, but {source.file} is a folder of texts: leave it out")
    with staged(session.out) as files:
        table = counted_texts(session, source, min_documents, stop_words) if texts else None
        with opened(session, source, run, nouns=DOCUMENT_NOUNS, table=table) as samples:
            if vocabulary is not None:
                samples.variables = read_vocabulary(vocabulary, samples.X.shape[1])
            model.vocabulary = samples.variables
            with session.step(f"fitting {topics} topics"):
                samples.fit(model)
            scored = samples.scored(model.transform, numbered("topic", topics), files, assigned="topic")
            topics_outcome(session, scored, model).write(session, files)


def counted_texts(session: Session, source: o.Source, min_documents: int, stop_words: bool) -> Table:
    """Return the word counts of a folder of texts."""
    ReadingOptions(**source.reading()).refuse_row_options("a folder of texts")
    with session.step(f"counting the words of {source.file.name}"):
        table = read_texts(source.file, min_documents, stop_words)
    for note in table.notes:
        session.say(note)
    return table


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


def topics_outcome(session: Session, scored: Scored, model: givens.TopicModel) -> CommandOutcome:
    """Return the results of a fitted TopicModel."""
    samples, shares = scored.samples, scored.shown.values
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    k, several = topics.shape[0], topics.shape[1] > 1
    most = min(10, topics.shape[1])
    coherence = model.coherence(samples.X, most) if several else np.full(k, np.nan)
    perplexity, alpha0 = float(model.perplexity(samples.X)), float(model.alpha_.sum())
    words = model.top_words(most)
    titled = [f"Share of {name}: {', '.join(row[:3])}" for name, row in zip(scored.header, words)]
    positions = topic_map(topics)
    mean_coherence = f"{np.nanmean(coherence):.3f}" if np.isfinite(coherence).any() else "–"
    return outcome(
        session,
        "topics",
        scored,
        samples.file,
        model.result_,
        noun="topic",
        weights=topics,
        components={
            "share": model.weights_,
            "title": "Topics",
            "weight": "probabilities",
            "entry": "word",
            "variable": "word",
            "lead": "The words of each topic and their probabilities. The percentage is the topic's mean share of a document. "
            "Search for a word to see it in every topic.",
        },
        columns={
            "share": (model.weights_, "%"),
            "documents": (scored.largest, ","),
            "coherence": (coherence, ".2f"),
        },
        words=("most probable words", [", ".join(row[:8]) for row in words]),
        title=f"{k} topics of {scored.number:,} documents",
        page_title=f"Topics of {samples.file.name}",
        subtitle=size_line(scored, k, "topic", DOCUMENT_NOUNS),
        facts=[
            ("Topics", str(k), f"the largest has {percent(float(model.weights_.max()))} of the words"),
            ("Perplexity", f"{perplexity:,.0f}", "of these documents; lower is better"),
            ("Coherence", mean_coherence, "mean NPMI of the ten most probable words of a topic"),
            ("α0", f"{alpha0:.3g}", "the smaller, the fewer topics per document"),
            ("Documents", f"{scored.number:,}", scored.described),
        ],
        size=size_of(scored, DOCUMENT_NOUNS),
        settings={key: value for key, value in model.get_params().items() if key != "vocabulary"},
        figures={
            "topics": records(
                scored.header, weight=model.weights_, alpha=model.alpha_, coherence=coherence, documents=scored.largest,
                words=words,
            ),
            "perplexity": perplexity,
            "alpha0": alpha0,
            "passes": model.n_iter_,
            "converged": model.converged_,
        },
        diagnostics=[
            (
                "Unexplained share of the third moment",
                f"{model.residual_:.3f}",
                "Tends to 0 for many documents that follow the model; noise and other structure raise it.",
            ),
            ("Variational passes", str(model.n_iter_), "After the moments; each raises a lower bound of the likelihood."),
        ],
        scores=scores_view(
            np.hstack([shares @ positions, shares]),
            scored.shown.names,
            axes=["Map, first direction", "Map, second direction", *titled],
            labels=scored.labels_with("largest topic"),
            total=scored.number,
            marks=[(str(i + 1), np.append(positions[i], np.eye(k)[i])) for i in range(k)],
            lead="A map of the documents. Numbers mark the topics: two topics are near each other if they share words, and a "
            "document lies between the topics that it is made of. Choose other axes to see the shares of single topics.",
        ),
    )  # fmt: skip

"""Topics of documents from moments, beside scikit-learn's and gensim's latent Dirichlet allocation.

AP news (2,246 documents, words in at least two training documents, 1,800 documents for training), and simulated documents
whose topics are known. All models are scored by one function: the topic shares of a held-out document are estimated from half
of its words, given the model's topics and α, and the perplexity is that of the other half. All methods have one thread, and
times are processor seconds, so that neither other programs nor the number of cores matter; for the same reason gensim's
single-core model is used. gensim learns both of its priors, which is its best setting here.

By default one split and small simulations. `GIVENS_TOPICS=full make bench ONLY=topics` takes five splits, scikit-learn's
default priors too, simulations of 50,000 documents, one of the size of the 20 newsgroups, and 1,000,000 documents streamed
from disk; `ap`, `simulated`, `newsgroups` or `stream` takes one of these parts in full. With `GIVENS_TOPICS_KEEP=FOLDER`
every measurement is kept there as soon as it is made, and a later run with the same code (for a rival: the same release and
benchmark) takes it from there: a run that was interrupted goes on, and `full` after its parts only puts them together.
Constants of `TopicModel` were chosen on splits of AP with other seeds, on other simulations and on docstrings of Python
packages (docs/topics.md).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import digamma
from scipy.stats import t as student
from sklearn.decomposition import LatentDirichletAllocation
from threadpoolctl import threadpool_limits

import givens
from givens import TopicModel
from givens.data.documents import WordCounts
from givens.data.rows import Rows
from givens.datasets import make_topics
from givens.topics.word_moments import npmi

WANTED = os.environ.get("GIVENS_TOPICS", "")
PARTS = ("ap", "simulated", "newsgroups", "stream")
KEEP = os.environ.get("GIVENS_TOPICS_KEEP", "")
OURS = ("moments", "refined")
TRAINING = 1800
BATCH = 20_000


def run(report):
    warnings.simplefilter("ignore")
    wanted = [WANTED] if WANTED in PARTS else list(PARTS)
    full = WANTED == "full" or WANTED in PARTS
    with threadpool_limits(1, user_api="blas"):
        if "ap" in wanted:
            _ap_news(report, full)
        if "simulated" in wanted:
            _simulated(report, full)
            _error_by_documents(report, full)
        if "newsgroups" in wanted and full:
            _newsgroups(report)
    if "stream" in wanted:
        _stream(report, full)
    if not full:
        report.note("one split of AP and small simulations; GIVENS_TOPICS=full measures all")
    if not importlib.util.find_spec("gensim"):
        report.note("left out gensim: it is not installed")
    if _taken:
        report.note(f"{len(_taken)} measurements were taken from earlier runs with the same code")


_taken: list[str] = []


def _kept(part, name, measure):
    """What `measure` returns, a list of numbers, or what an earlier run kept of it."""
    if not KEEP:
        return measure()
    slug = re.sub(r"[^a-z0-9]+", "_", f"{part} {name}".lower())
    path = Path(KEEP) / f"{slug}.{_fingerprint(name in OURS)}.json"
    if path.is_file():
        _taken.append(slug)
        return json.loads(path.read_text())
    found = [float(value) for value in measure()]
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(found))
    unfinished.replace(path)
    return found


def _fingerprint(ours):
    """Of all code that a measurement depends on: the package, or the rivals' releases and what draws and scores documents."""
    package = Path(givens.__file__).parent
    files = sorted(package.rglob("*.py")) if ours else [package / "topics" / "simulated.py"]
    digest = hashlib.sha256()
    for file in [*files, Path(__file__), package / "topics" / "coherence.py"]:
        digest.update(file.read_bytes())
    for rival in () if ours else ("scikit-learn", "gensim"):
        if importlib.util.find_spec("sklearn" if rival == "scikit-learn" else rival):
            digest.update(importlib.metadata.version(rival).encode())
    return digest.hexdigest()[:12]


def _interval(values):
    """Mean and 95 % interval of paired values, one per split, as a sentence; and the ends of the interval."""
    values = np.asarray(values, dtype=float)
    mean = float(values.mean())
    if len(values) < 2:
        return f"{mean:.3g} (one split)", mean, mean
    half = float(student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return f"{mean:.3g} [{mean - half:.3g}, {mean + half:.3g}]", mean - half, mean + half


def _ap_news(report, full):
    path = report.data("ap_news")
    if path is None:
        return
    stored = np.load(path, allow_pickle=False)
    X = sparse.csr_matrix(
        (stored["data"].astype(float), stored["indices"], stored["indptr"]), shape=stored["shape"]
    )
    for k in (10, 20, 50, 100):
        figures = {}
        for seed in range(5 if full else 1):
            train, observed, held = completion_split(X, seed)
            for name, make in _models(k, full).items():

                def measure(make=make, train=train, observed=observed, held=held):
                    topics, alpha, seconds = _fitted(make, train)
                    perplexity = completion_perplexity(topics, alpha, observed, held)
                    return perplexity, seconds, _coherence(topics, train)

                figures.setdefault(name, []).append(_kept(f"ap k{k} split{seed}", name, measure))
        means = {name: np.mean(values, axis=0) for name, values in figures.items()}
        for name, (perplexity, seconds, coherence) in means.items():
            report.row(
                AP_topics=k,
                method=name,
                perplexity=perplexity,
                coherence=coherence,
                processor_seconds=seconds,
            )
        _ap_claims(report, k, figures, means)


def _ap_claims(report, k, figures, means):
    rivals = [name for name in means if name.startswith("scikit-learn, 50")]
    best = min(rivals, key=lambda name: means[name][0])
    ours, theirs = np.array(figures["refined"]), np.array(figures[best])
    lower, _, most = _interval(ours[:, 0] - theirs[:, 0])
    report.claim(
        f"AP, {k} topics: perplexity with refinement less that of the better of scikit-learn's priors after 50 passes",
        "< 0 in every split",
        lower,
        np.all(ours[:, 0] < theirs[:, 0]) and most < 0,
    )
    times, _, _ = _interval(theirs[:, 1] / ours[:, 1])
    ratio = means[best][1] / means["refined"][1]
    report.claim(f"AP, {k} topics: refined, in less time", "≥ 10 times", f"{times} times", ratio >= 10)
    higher, least, _ = _interval(ours[:, 2] - theirs[:, 2])
    report.claim(f"AP, {k} topics: coherence no lower, difference", "≥ 0", higher, least >= 0)
    moments, passes = np.array(figures["moments"]), np.array(figures["scikit-learn, 10 passes"])
    times, _, _ = _interval(passes[:, 1] / moments[:, 1])
    ratio = means["scikit-learn, 10 passes"][1] / means["moments"][1]
    report.claim(
        f"AP, {k} topics: moments alone, in less time than 10 passes",
        "≥ 20 times",
        f"{times} times",
        ratio >= 20,
    )
    report.ratio(f"topics of AP, k = {k}, moments", "scikit-learn, 10 passes", ratio, 20)


def _models(k, full=True):
    """Every model by name: a function from training counts to components and α.

    After 50 passes scikit-learn's own priors, 1/k, are worse than 0.1 on AP; only a full run measures them.
    """
    models = {
        "moments": lambda X: _ours(k, X, max_iter=0),
        "refined": lambda X: _ours(k, X),
        "scikit-learn, 10 passes": lambda X: _scikit_learn(k, X, max_iter=10),
        "scikit-learn, 50 passes, priors 0.1": lambda X: _scikit_learn(
            k, X, max_iter=50, doc_topic_prior=0.1, topic_word_prior=0.1
        ),
        "scikit-learn online, 10 passes": lambda X: _scikit_learn(
            k, X, max_iter=10, learning_method="online"
        ),
    }
    if full:
        models["scikit-learn, 50 passes"] = lambda X: _scikit_learn(k, X, max_iter=50)
    if importlib.util.find_spec("gensim"):
        models["gensim, 10 passes, priors learned"] = lambda X: _gensim(k, X, 10)
    return models


def _ours(k, X, **options):
    model = TopicModel(k, threads=1, **options).fit(X)
    return model.components_, model.alpha_


def _scikit_learn(k, X, **options):
    model = LatentDirichletAllocation(k, random_state=0, **options).fit(X)
    return model.components_, np.full(k, model.doc_topic_prior_)


def _gensim(k, X, passes):
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    corpus = Sparse2Corpus(X, documents_columns=False)
    names = {v: str(v) for v in range(X.shape[1])}
    model = LdaModel(
        corpus, k, id2word=names, passes=passes, alpha="auto", eta="auto", random_state=0, eval_every=None
    )
    return model.state.get_lambda(), np.asarray(model.alpha, dtype=float)


def _fitted(make, train):
    if "_ours" in make.__code__.co_names:
        make(train[:200])  # compile
    start = time.process_time()
    components, alpha = make(train)
    seconds = time.process_time() - start
    return components / components.sum(axis=1, keepdims=True), alpha, seconds


def completion_split(X, seed, training=TRAINING):
    """Training documents, and of the others the observed and the held-out halves of their words."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(X.shape[0])
    train, test = X[order[:training]], X[order[training:]]
    kept = np.flatnonzero(np.asarray((train > 0).sum(axis=0)).ravel() >= 2)
    train, test = train[:, kept].tocsr(), test[:, kept].tocsr()
    observed = test.copy()
    observed.data = rng.binomial(test.data.astype(int), 0.5).astype(float)
    held = sparse.csr_matrix(test - observed)
    observed.eliminate_zeros()
    held.eliminate_zeros()
    return train, observed, held


def completion_perplexity(topics, alpha, observed, held):
    """Perplexity of the held-out words, with each document's shares by variational inference from its observed ones."""
    beta = np.ascontiguousarray(topics.T)
    n, k = observed.shape[0], len(alpha)
    rows = np.repeat(np.arange(n), np.diff(observed.indptr))
    gamma = alpha + np.asarray(observed.sum(axis=1)).ravel()[:, None] / k
    for _ in range(500):
        theta = np.exp(digamma(gamma) - digamma(gamma.sum(axis=1))[:, None])
        probability = np.einsum("nk,nk->n", theta[rows], beta[observed.indices])
        ratio = sparse.csr_matrix(
            (observed.data / np.maximum(probability, 1e-300), observed.indices, observed.indptr),
            observed.shape,
        )
        new = alpha + theta * (ratio @ beta)
        change = np.abs(new - gamma).mean()
        gamma = new
        if change < 1e-4:
            break
    shares = gamma / gamma.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(n), np.diff(held.indptr))
    probability = np.einsum("nk,nk->n", shares[rows], beta[held.indices])
    return float(np.exp(-(held.data @ np.log(probability)) / held.data.sum()))


def _coherence(topics, train):
    top = np.argsort(-topics, axis=1, kind="stable")[:, :10]
    return float(np.nanmean(npmi(Rows([train], check=WordCounts(True)), top)))


def topic_error(truth, topics):
    """Mean L1 distance of topics in their best order."""
    distances = cdist(truth, topics, "cityblock")
    return float(distances[linear_sum_assignment(distances)].mean())


RECOVERY = ("moments", "refined", "scikit-learn, 10 passes", "scikit-learn online, 10 passes")


def _simulated(report, full):
    """Documents of 100 words of 5,000: how far the topics are from the true ones."""
    n = 50_000 if full else 5_000
    for k in (20, 100) if full else (20,):
        drawn = make_topics(
            n, n_components=k, n_words=5000, document_length=100, topic_sparsity=0.02, random_state=100 + k
        )
        errors = {}
        for name, make in _models(k).items():
            if name not in RECOVERY and not name.startswith("gensim"):
                continue

            def measure(make=make, drawn=drawn):
                topics, _, seconds = _fitted(make, drawn.X)
                return topic_error(drawn.topics, topics), seconds

            errors[name], seconds = _kept(f"simulated n{n} k{k}", name, measure)
            report.row(
                simulated_documents=n, topics=k, method=name, L1_error=errors[name], processor_seconds=seconds
            )
        rivals = min(error for name, error in errors.items() if name not in ("moments", "refined"))
        for name in ("refined", "moments"):
            report.claim(
                f"simulated, {n:,} documents, {k} topics: L1 error of {name} topics below all rivals",
                f"< {rivals:.3f}",
                errors[name],
                errors[name] < rivals,
            )


def _newsgroups(report):
    """Simulated documents of the size of the 20 newsgroups (11,314 for training, 7,532 held out): words of Zipf's frequencies."""
    rng = np.random.default_rng(20)
    words, k = 20_000, 50
    base = 1 / np.arange(1.0, words + 1)
    topics = rng.gamma(0.05, size=(k, words)) * np.sqrt(base) + 1e-12
    topics = 0.3 * base / base.sum() + 0.7 * topics / topics.sum(axis=1, keepdims=True)
    drawn = make_topics(
        18_846, n_components=k, n_words=words, document_length=150, topics=topics, alpha0=2.0, random_state=21
    )
    train, observed, held = completion_split(drawn.X, seed=0, training=11_314)
    found = {}
    for name, make in _models(20).items():
        if name not in (*RECOVERY, "scikit-learn, 50 passes, priors 0.1") and not name.startswith("gensim"):
            continue

        def measure(make=make):
            fitted, alpha, seconds = _fitted(make, train)
            return completion_perplexity(fitted, alpha, observed, held), seconds

        found[name] = _kept("newsgroups", name, measure)
        report.row(
            newsgroups_sized="20 topics of 50",
            method=name,
            perplexity=found[name][0],
            processor_seconds=found[name][1],
        )
    rival = "scikit-learn, 50 passes, priors 0.1"
    report.claim(
        "size of the newsgroups: perplexity with refinement below scikit-learn's after 50 passes",
        f"< {found[rival][0]:.0f}",
        f"{found['refined'][0]:.0f}",
        found["refined"][0] < found[rival][0],
    )
    ratio = found[rival][1] / found["refined"][1]
    report.claim("size of the newsgroups: refined, in less time", "≥ 10 times", f"{ratio:.1f}", ratio >= 10)


def _error_by_documents(report, full):
    """Moments alone: the error halves with four times as many documents."""
    sizes = (4_000, 16_000, 64_000, 256_000) if full else (2_000, 8_000, 32_000)
    drawn = make_topics(
        sizes[-1], n_components=10, n_words=1000, document_length=100, topic_sparsity=0.05, random_state=7
    )
    errors: dict[str, list[tuple[int, float]]] = {"moments": [], "refined": []}
    for n in sizes:
        for name, passes in (("moments", 0), ("refined", 10)):

            def measure(n=n, passes=passes):
                components, _ = _ours(10, drawn.X[:n], max_iter=passes)
                return [topic_error(drawn.topics, components / components.sum(axis=1, keepdims=True))]

            (error,) = _kept(f"error n{n}", name, measure)
            report.row(
                documents=n, method=name, error=error, error_times_root_of_documents=error * np.sqrt(n)
            )
            errors[name].append((n, error))
    report.figure(
        "topics_error",
        "Distance of topics from the true ones (dashed: 1/√documents)",
        "documents",
        "mean L1 distance",
        errors,
        slope=-0.5,
    )
    slope = float(np.polyfit(np.log(sizes), np.log([error for _, error in errors["moments"]]), 1)[0])
    report.claim(
        "moments: the error falls with the number of documents N as N^−½",
        "−0.6 to −0.4",
        slope,
        -0.6 < slope < -0.4,
    )


class StoredStream:
    """Documents in files, one batch each, read anew in every pass."""

    def __init__(self, folder, documents):
        self.files = [Path(folder) / f"{start}.npz" for start in range(0, documents, BATCH)]

    def __iter__(self):
        for file in self.files:
            yield sparse.load_npz(file)


def _stream_topics():
    return np.random.default_rng(0).gamma(0.02, size=(20, 5000)) + 1e-12


def store(folder, documents):
    """Draw the documents and write them, a batch per file."""
    for start in range(0, documents, BATCH):
        X = make_topics(
            min(BATCH, documents - start), n_components=20, n_words=5000, document_length=100,
            topics=_stream_topics(), alpha=np.full(20, 0.05), random_state=start,
        ).X  # fmt: skip
        X.data = X.data.astype(np.uint8)
        sparse.save_npz(Path(folder) / f"{start}.npz", X, compressed=False)


def fit_stream(folder, documents):
    """In a process of its own, whose memory is measured: distance of the topics, and processor seconds of the fit."""
    warnings.simplefilter("ignore")
    TopicModel(20, max_iter=0).fit(next(iter(StoredStream(folder, documents)))[:500])  # compile
    start = time.process_time()
    model = TopicModel(20, max_iter=0).fit(StoredStream(folder, documents))
    seconds = time.process_time() - start
    truth = _stream_topics()
    error = topic_error(
        truth / truth.sum(axis=1, keepdims=True),
        model.components_ / model.components_.sum(axis=1, keepdims=True),
    )
    return error, seconds


def _stream(report, full):
    """Documents on disk that are never all in memory: memory and time of moments alone."""
    sizes = (250_000, 1_000_000) if full else (20_000, 80_000)
    found = {}
    with tempfile.TemporaryDirectory() as folder:

        def measure(n):
            if not any(Path(folder).iterdir()):
                store(folder, sizes[-1])
            peak = report.peak(fit_stream, folder, n)
            return peak.bytes, peak.seconds, *peak.value

        for n in sizes:
            found[n] = _kept(f"stream n{n}", "moments", lambda n=n: measure(n))
    for n, (most, seconds, error, processor_seconds) in found.items():
        report.row(
            streamed_documents=n,
            processor_seconds=processor_seconds,
            seconds=seconds,
            most_memory_MB=most / 1e6,
            L1_error=error,
        )
    memory, growth = found[sizes[1]][0], found[sizes[1]][3] / found[sizes[0]][3]
    report.claim(
        f"{sizes[1]:,} documents streamed from disk: memory",
        "< 2 GB",
        f"{memory / 1e9:.2f} GB",
        memory < 2e9,
    )
    report.claim(
        "four times as many documents take",
        "≤ 5 times the processor seconds",
        f"{growth:.2f} times",
        growth <= 5,
    )

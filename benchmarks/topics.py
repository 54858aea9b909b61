"""Topics of documents from moments, beside scikit-learn's and gensim's latent Dirichlet allocation.

AP news (2,246 documents, words in at least two training documents, 1,800 documents for training), and simulated documents whose
topics are known. All models are scored by one function: half of the words of each held-out document tell its topic shares, given
the model's topics and α, the perplexity is that of the other half. One thread on both sides, and processor seconds instead of
seconds, so that neither other programs nor the number of cores count. gensim learns both of its priors, which is its best setting
here, and its single-core model is used for the same reason.

By default one split and small simulations. `GIVENS_TOPICS=full make bench ONLY=topics` takes five splits, scikit-learn's default
priors too, simulations of 50,000 documents, one of the size of the 20 newsgroups, and 1,000,000 documents streamed from disk;
`ap`, `simulated`, `newsgroups` or `stream` takes one of these parts in full. Constants of `TopicModel` were chosen on splits of
AP with other seeds, on other simulations and on docstrings of Python packages (docs/topics.md).
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import digamma
from sklearn.decomposition import LatentDirichletAllocation
from threadpoolctl import threadpool_limits

from givens import TopicModel
from givens.datasets import make_topics
from givens.topics.coherence import npmi
from givens.topics.documents import CountedDocuments

WANTED = os.environ.get("GIVENS_TOPICS", "")
PARTS = ("ap", "simulated", "newsgroups", "stream")
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
                topics, alpha, seconds = _fitted(make, train)
                found = completion_perplexity(topics, alpha, observed, held)
                figures.setdefault(name, []).append((found, seconds, _coherence(topics, train)))
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
    report.claim(
        f"AP, {k} topics: perplexity with refinement below the better of scikit-learn's priors after 50 passes, every split",
        f"< {theirs[:, 0].mean():.0f}",
        f"{ours[:, 0].mean():.0f}",
        np.all(ours[:, 0] < theirs[:, 0]),
    )
    ratio = means[best][1] / means["refined"][1]
    report.claim(f"AP, {k} topics: refined, in less time", "≥ 10 times", f"{ratio:.1f} times", ratio >= 10)
    report.claim(
        f"AP, {k} topics: coherence no lower",
        f"≥ {means[best][2]:.3f}",
        f"{means['refined'][2]:.3f}",
        means["refined"][2] >= means[best][2],
    )
    ratio = means["scikit-learn, 10 passes"][1] / means["moments"][1]
    report.claim(
        f"AP, {k} topics: moments alone, in less time than 10 passes",
        "≥ 20 times",
        f"{ratio:.1f} times",
        ratio >= 20,
    )
    report.ratio(f"topics of AP, k = {k}, moments", "scikit-learn, 10 passes", ratio, 20)


def _models(k, full=True):
    """Every model by name: a function from training counts to components and α.

    After 50 passes scikit-learn's own priors, 1/k, are worse than 0.1 on AP; only a full run measures them.
    """
    models = {
        "moments": lambda X: _ours(k, X, refine=0),
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
    return float(np.nanmean(npmi(CountedDocuments([train]), top, train.shape[1])))


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
            n, n_topics=k, n_words=5000, document_length=100, topic_sparsity=0.02, random_state=100 + k
        )
        errors = {}
        for name, make in _models(k).items():
            if name not in RECOVERY and not name.startswith("gensim"):
                continue
            topics, _, seconds = _fitted(make, drawn.X)
            errors[name] = topic_error(drawn.topics, topics)
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
        18_846, n_topics=k, n_words=words, document_length=150, topics=topics, alpha0=2.0, random_state=21
    )
    train, observed, held = completion_split(drawn.X, seed=0, training=11_314)
    found = {}
    for name, make in _models(20).items():
        if name not in (*RECOVERY, "scikit-learn, 50 passes, priors 0.1") and not name.startswith("gensim"):
            continue
        fitted, alpha, seconds = _fitted(make, train)
        found[name] = completion_perplexity(fitted, alpha, observed, held), seconds
        report.row(
            newsgroups_sized="20 topics of 50",
            method=name,
            perplexity=found[name][0],
            processor_seconds=seconds,
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
        sizes[-1], n_topics=10, n_words=1000, document_length=100, topic_sparsity=0.05, random_state=7
    )
    errors: dict[str, list[tuple[int, float]]] = {"moments": [], "refined": []}
    for n in sizes:
        for name, refine in (("moments", 0), ("refined", 10)):
            components, _ = _ours(10, drawn.X[:n], refine=refine)
            error = topic_error(drawn.topics, components / components.sum(axis=1, keepdims=True))
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
            min(BATCH, documents - start), n_topics=20, n_words=5000, document_length=100,
            topics=_stream_topics(), alpha=np.full(20, 0.05), random_state=start,
        ).X  # fmt: skip
        X.data = X.data.astype(np.uint8)
        sparse.save_npz(Path(folder) / f"{start}.npz", X, compressed=False)


def fit_stream(folder, documents):
    """In a process of its own, whose memory is measured."""
    warnings.simplefilter("ignore")
    model = TopicModel(20, refine=0).fit(StoredStream(folder, documents))
    truth = _stream_topics()
    return topic_error(
        truth / truth.sum(axis=1, keepdims=True),
        model.components_ / model.components_.sum(axis=1, keepdims=True),
    )


def _stream(report, full):
    """Documents on disk that are never all in memory: memory and time of moments alone."""
    sizes = (250_000, 1_000_000) if full else (20_000, 80_000)
    with tempfile.TemporaryDirectory() as folder:
        store(folder, sizes[-1])
        peaks = {n: report.peak(fit_stream, folder, n) for n in sizes}
    for n, peak in peaks.items():
        report.row(
            streamed_documents=n, seconds=peak.seconds, most_memory_MB=peak.bytes / 1e6, L1_error=peak.value
        )
    small, large = (peaks[n] for n in sizes)
    report.claim(
        f"{sizes[1]:,} documents streamed from disk: memory",
        "< 2 GB",
        f"{large.bytes / 1e9:.2f} GB",
        large.bytes < 2e9,
    )
    growth = large.seconds / small.seconds
    report.claim("four times as many documents take", "≤ 5 times as long", f"{growth:.2f} times", growth <= 5)

"""What `make fuzz` found, once each: inputs that ended in a raw exception, or in numbers that are not finite."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet
from scipy import sparse
from sklearn.decomposition import PCA

import givens
from givens import metrics, rotations
from givens.app.tables import DataError, open_rows, read_table
from givens.datasets import make_topics
from givens.ica.jade import cumulant_matrices
from givens.ica.sobi import lagged_covariances
from givens.metrics import amari
from givens.objectives import Columns, JointDiagonal, MomentTensor, SparseColumns, from_samples
from paper.baselines import gpower

DATA = np.random.default_rng(0).standard_normal((20, 4))
MASKED = np.ma.masked_greater(DATA, 1.0)
WITH_NAN = np.where(DATA > 1.5, np.nan, DATA)
UNFIT = {
    "complex": (DATA + 1j, "complex"),
    "masked": (MASKED, "masked"),
    "NaN": (WITH_NAN, "finite"),
    "text": (np.full((20, 4), "x"), "numbers"),
    "objects": (np.full((20, 4), object()), "numbers"),
    "sparse": (sparse.csr_matrix(DATA), "sparse"),
    "a vector": (DATA[0], "matrix"),
    "a stack": (np.stack([DATA, DATA]), "matrix"),
    "a ragged list": ([[1.0, 2.0], [3.0]], "unequal"),
}
LOADINGS = np.eye(4)[:2]
FUNCTIONS = {
    "adjusted_variance": lambda X: metrics.adjusted_variance(X, LOADINGS),
    "projected_variance": lambda X: metrics.projected_variance(X, LOADINGS),
    "score_correlation": lambda X: metrics.score_correlation(X, LOADINGS),
    "total_variance": metrics.total_variance,
    "orthogonality_defect": metrics.orthogonality_defect,
    "gpower": lambda X: gpower(X, 2, 1.0),
    "MomentTensor": MomentTensor,
    "from_samples": from_samples,
    "cumulant_matrices": cumulant_matrices,
    "lagged_covariances": lambda X: lagged_covariances(X, [1]),
    "amari": lambda X: amari(X, DATA),
    "orthogonality": rotations.orthogonality,
    "repair": rotations.repair,
    "determinant": rotations.determinant,
}


# Every step of a run looks at these, so they check the type of an array only.
QUICK = {"orthogonality", "repair", "determinant"}
PAIRS = [
    (name, kind)
    for name in FUNCTIONS
    for kind in UNFIT
    if name not in QUICK or kind not in ("NaN", "a vector", "a stack")
]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_functions_refuse_what_they_would_misread(name, kind):
    data, word = UNFIT[kind]
    with pytest.raises((TypeError, ValueError), match=word):
        FUNCTIONS[name](data)


COUNTS = make_topics(30, n_components=2, n_words=10).X.toarray() + 1
FLAT = np.ones((12, 7))
TABLE = np.random.default_rng(0).standard_normal((12, 6))
HUGE = np.where(np.arange(12)[:, None] == 3, 1.7e308, TABLE)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        # Loadings.
        (lambda: metrics.adjusted_variance(DATA, LOADINGS + 1j), "components"),
        (lambda: metrics.projected_variance(DATA, np.ma.masked_equal(LOADINGS, 1.0)), "components"),
        (lambda: metrics.score_correlation(DATA, np.full((2, 4), np.nan)), "components"),
        (lambda: metrics.loading_overlap([[1.0], [1.0, 2.0]]), "components"),
        (lambda: metrics.loading_overlap(1e200 * LOADINGS), "loadings have the norm 1"),
        (lambda: metrics.orthogonality_defect(1e200 * DATA), "it is not near orthogonal"),
        # Shapes that do not agree.
        (lambda: metrics.adjusted_variance(DATA[:0], LOADINGS), "at least one sample"),
        (lambda: metrics.adjusted_variance(DATA, np.eye(3)), "column per feature"),
        (lambda: rotations.determinant(DATA), "square matrix"),
        (lambda: amari(np.eye(3), np.eye(2)), "column for each row of mixing"),
        (lambda: amari(np.zeros((2, 2)), np.eye(2)), "zeros"),
        (lambda: lagged_covariances(DATA, [1, 99]), "lags"),
        (lambda: givens.FactorRotation().fit(PCA(0).fit(DATA)), "no components to rotate"),
        (lambda: givens.joint_diagonalize(sparse.csr_matrix(np.eye(3))), "dense"),
        (lambda: givens.joint_diagonalize([np.eye(2)], sample_weight="x"), "sample_weight"),
        (lambda: givens.TopicModel(2).fit(COUNTS).transform(np.array(1.0)), "Expected 2D array"),
        # Features that do not vary.
        (lambda: givens.RotatedPCA(1).fit(FLAT), "every feature of X is constant, so there is no variance"),
        (lambda: givens.RotatedPCA(1, svd_solver="arpack").fit(FLAT), "every feature of X is constant"),
        (
            lambda: givens.RotatedPCA(3).fit(np.hstack([FLAT, DATA[:12, :2]])),
            r"have 2 components with variance.* than the 3 to rotate",
        ),
        # Numbers that no float64 holds, once they are squared or summed.
        (lambda: cumulant_matrices(DATA * 1e149), "so large that their fourth powers exceed"),
        (lambda: givens.SparsePCA(2).fit(TABLE).transform(HUGE), "scores exceed what float64 holds"),
        (lambda: metrics.adjusted_variance(np.full((3, 6), 1.7e308), np.eye(6)), "their sums exceed"),
        (
            lambda: givens.joint_diagonalize(np.full((5, 4, 4), 1e308)),
            "rotated ones exceed what float64 holds",
        ),
        (lambda: gpower(1e300 * DATA, 2, 0.1), "squares exceed what float64 holds"),
        (lambda: gpower(1e-310 * DATA, 2, 0.0), "A has numbers so small"),
        # Parameters of another type, or that no computer holds.
        (lambda: rotations.random_orthogonal(2.5), "n must be a whole number"),
        (lambda: rotations.rotation(3, 0, 1, np.nan), "finite angle"),
        (lambda: make_topics(5, alpha0=np.inf), "alpha0 must be a number"),
        (lambda: givens.SphericalMixture(2, variance=[1, 2]).fit(DATA), "variance must be one of"),
        (lambda: givens.TopicModel(2, vocabulary=0.3).fit(COUNTS), "vocabulary must be a list of words"),
        (lambda: givens.TopicModel(2, counts=[1, 2]).fit(COUNTS), "counts must be one of 'whole', 'any'"),
        (lambda: givens.TopicModel(1e300).fit(COUNTS), "n_components must be a whole number from 1 to"),
        (lambda: givens.TopicModel(2, alpha0=1e300).fit(COUNTS), "alpha0 must be a number from 0"),
        (lambda: givens.ICA(w_init="x").fit(DATA), "w_init must be numbers"),
        (lambda: givens.ICA(w_init=[[1.0, np.nan], [0.0, 1.0]]).fit(DATA), "w_init must be finite"),
        (
            lambda: givens.SparsePCA(2, threads=1e300).fit(DATA),
            "threads must be a whole number from 1 to 1024",
        ),
        (lambda: givens.SparsePCA([1, 2], stability=2).fit(DATA), "n_components must be a whole number"),
        (
            lambda: givens.StreamingSparsePCA(1, sketch=10**400).fit(DATA),
            "sketch .* to 2147483647",
        ),
    ],
)
def test_what_ended_in_a_raw_exception_gets_a_sentence(call, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        call()


@pytest.mark.parametrize("dtype", [">f8", "f2"])
@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_counts_of_any_type(dtype, fit):
    found, expected = (
        getattr(givens.TopicModel(2), fit)(COUNTS.astype(kind))
        for kind in (dtype, "f4" if dtype == "f2" else "f8")
    )
    np.testing.assert_array_equal(found.components_, expected.components_)


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (givens.SphericalMixture(1), np.full((3, 60), 1e-310) * np.arange(1, 4)[:, None]),
        (givens.ICA(2, contrast="kurtosis", w_init=np.eye(2), whiten=False), 1e-100 * DATA[:, :2]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_tiny_numbers_end_in_a_finite_model(model, X):
    fitted = model.fit(X)
    names = [name for name in ("means_", "variances_", "components_") if hasattr(fitted, name)]
    assert names
    assert all(np.isfinite(getattr(fitted, name)).all() for name in names)


@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_the_mean_of_subnormal_numbers(fit):
    X = np.ldexp(np.random.default_rng(0).integers(-(2**20), 2**20, (30, 3)).astype(float), -1060)
    model = getattr(givens.SphericalMixture(1, random_state=0), fit)(X)
    np.testing.assert_allclose(model.means_, X.mean(axis=0)[None], atol=1e-320)


@pytest.mark.parametrize(
    ("size", "loading_size"), [(1e200, 1e200), (1e-200, 1e-200), (1e-310, 1.0), (1e300, 1e-300)]
)
def test_metrics_of_loadings_and_data_of_any_size(size, loading_size):
    Z = np.random.default_rng(1).standard_normal((3, 4))
    found = metrics.score_correlation(size * DATA, loading_size * Z)
    assert found == pytest.approx(metrics.score_correlation(DATA, Z), rel=1e-9 if size > 1e-300 else 1e-2)
    assert metrics.projected_variance(DATA, 1e-310 * Z) == pytest.approx(metrics.projected_variance(DATA, Z))


def test_products_of_large_numbers_are_no_nan():
    assert not np.isnan(lagged_covariances(1e300 * DATA, [1, 2])).any()


@pytest.mark.parametrize(
    "objective",
    [
        lambda: SparseColumns(1e290 * DATA[:, :1], 0.0),
        lambda: JointDiagonal(np.full((1, 1, 1), 1e300)),
        lambda: Columns(1e300 * np.eye(3), "varimax"),
    ],
)
def test_a_gradient_of_zero_is_zero_in_any_unit(objective):
    result = givens.minimize(objective(), tol=1e-8)
    assert not np.isnan(result.gradient_norm)
    assert not np.isnan(result.value)


@pytest.mark.parametrize(
    ("model", "size"),
    [
        (givens.JADE(2), 1e-310),
        (givens.SOBI(2), 1e300),
        (givens.ICA(2, random_state=0), 1e300),
        (givens.SparsePCA(2, threshold=0.1), 1e300),
        (givens.FactorRotation(), 1e300),
        (givens.RotatedPCA(2, scale=True), 1e300),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_models_whose_variances_are_no_numbers_are_refused(model, size):
    model.fit(DATA)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(ValueError, match="divide them by a constant of their size"):
        model.fit(size * DATA)
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert all(after[name] is before[name] for name in before)


def test_an_archive_with_something_that_is_no_array(tmp_path):
    buffer = io.BytesIO()
    sparse.save_npz(buffer, sparse.csr_matrix(DATA))
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(tmp_path / "x.npz", "w") as new:
        for name in old.namelist():
            content = b"no array" if name == "format.npy" else old.read(name)
            new.writestr(name, content)
    np.testing.assert_array_equal(read_table(tmp_path / "x.npz").values.toarray(), DATA)


def damaged_metadata(path, table):
    """pandas' own note in the file is cut off."""
    parquet.write_table(table.replace_schema_metadata({"pandas": '{"index_columns": ["na'}), path)


def damaged_text(path, table):
    """A name is not UTF-8."""
    parquet.write_table(table, path, compression="none", use_dictionary=False)
    content = path.read_bytes()
    assert b"sample 7" in content
    path.write_bytes(content.replace(b"sample 7", b"sample \xff"))


@pytest.mark.parametrize("damage", [damaged_metadata, damaged_text])
def test_damaged_text_in_parquet(tmp_path, damage):
    table = pandas.DataFrame(DATA, columns=list("abcd"))
    table.insert(0, "name", [f"sample {k}" for k in range(20)])
    damage(tmp_path / "x.parquet", pyarrow.Table.from_pandas(table))
    for read in (read_table, lambda path: list(open_rows(path))):
        with pytest.raises(DataError, match=r"x\.parquet"):
            read(tmp_path / "x.parquet")


def test_scores_of_features_whose_deviations_have_no_reciprocal():
    X = np.ldexp(np.random.default_rng(0).integers(1, 2**20, (18, 5)).astype(float), -1060)
    model = givens.SparsePCA(2, threshold=0.2, scale=True, random_state=0).fit(X)
    large = givens.SparsePCA(2, threshold=0.2, scale=True, random_state=0).fit(np.ldexp(X, 200))
    np.testing.assert_allclose(model.transform(X), large.transform(np.ldexp(X, 200)), rtol=1e-3)
    rows = sparse.csr_matrix(X)
    np.testing.assert_allclose(model.transform(rows), model.transform(X), rtol=1e-6, atol=1e-9)


def test_a_solver_that_fails(monkeypatch):
    def fail(self, X):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(PCA, "fit", fail)
    with pytest.raises(ValueError, match=r"svd_solver='arpack' found no components.*did not converge"):
        givens.RotatedPCA(1, svd_solver="arpack").fit(np.eye(12, 7))


@pytest.mark.parametrize(("where", "value"), [("indices", 40_000_000), ("indptr", -1_000_000_000)])
@pytest.mark.parametrize("stream", [False, True])
def test_an_h5ad_file_whose_indices_point_outside(tmp_path, stream, where, value):
    anndata = pytest.importorskip("anndata")
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5ad"
    anndata.AnnData(sparse.random(20, 5, 0.5, "csr", random_state=0)).write_h5ad(path)
    with h5py.File(path, "r+") as file:
        file[f"X/{where}"][-1] = value
    with pytest.raises(DataError, match=r"x\.h5ad is a damaged \.h5ad file"):
        list(open_rows(path)) if stream else read_table(path)


@pytest.mark.parametrize("stream", [False, True])
def test_an_h5ad_file_that_hdf5_reads_for_ever(tmp_path, monkeypatch, stream):
    anndata = pytest.importorskip("anndata")
    monkeypatch.setattr("givens.app.tables.hdf5.PATIENCE_SECONDS", 3.0)
    path = tmp_path / "x.h5ad"
    anndata.AnnData(np.eye(5)).write_h5ad(path)
    content = bytearray(path.read_bytes())
    first = content.index(b"GCOL") + 16  # behind the signature, version and size of the heap of strings
    content[first : first + 16] = bytes(16)  # free space of no size: a loop over objects does not advance
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.h5ad is a damaged \.h5ad file"):
        list(open_rows(path)) if stream else read_table(path)


def test_a_slope_whose_square_is_no_number_is_searched():
    from givens.objectives.harmonics import periodic

    def g(theta):
        return 1e200 * abs(np.sin(theta / 2 + 0.3))

    found = periodic(g, g(0.0))
    assert np.isfinite(found.theta)
    assert found.gain >= 0


def test_a_stream_of_subnormal_data():
    X = np.random.default_rng(0).integers(1, 5, (12, 4)) * 1e-310
    model = givens.StreamingSparsePCA(sketch=("algorithm 5", 0.1))
    with pytest.warns(UserWarning, match="exceeds the threshold"):
        model.fit(X)
    assert np.isfinite(model.components_).all()

"""What `make fuzz` found, once each: inputs that ended in a raw exception, or in numbers that are not finite."""

from __future__ import annotations

import io
import warnings
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
from givens.sparse_pca.loadings import refit
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
    "refit": lambda X: refit(X, LOADINGS),
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


@pytest.mark.parametrize("kind", ["complex", "masked", "NaN", "text", "ragged"])
def test_loadings_are_checked_too(kind):
    rows = {
        "complex": LOADINGS + 1j,
        "masked": np.ma.masked_equal(LOADINGS, 1.0),
        "NaN": np.where(LOADINGS > 0, np.nan, 0.0),
        "text": [["x"] * 4],
        "ragged": [[1.0], [1.0, 2.0]],
    }[kind]
    for measure in (metrics.adjusted_variance, metrics.projected_variance, metrics.score_correlation):
        with pytest.raises((TypeError, ValueError), match="components"):
            measure(DATA, rows)
    with pytest.raises((TypeError, ValueError), match="components"):
        metrics.loading_overlap(rows)


def test_shapes_that_do_not_agree():
    with pytest.raises(ValueError, match="column for each of the 4 features"):
        refit(DATA, np.eye(3))
    with pytest.raises(ValueError, match="at least one sample"):
        metrics.adjusted_variance(DATA[:0], LOADINGS)
    with pytest.raises(ValueError, match="square matrix"):
        rotations.determinant(DATA)
    with pytest.raises(ValueError, match="column for each row of mixing"):
        amari(np.eye(3), np.eye(2))
    with pytest.raises(ValueError, match="zeros"):
        amari(np.zeros((2, 2)), np.eye(2))
    with pytest.raises(ValueError, match="n must be a whole number"):
        rotations.random_orthogonal(2.5)
    with pytest.raises(ValueError, match="finite angle"):
        rotations.rotation(3, 0, 1, np.nan)
    with pytest.raises(ValueError, match="lags"):
        lagged_covariances(DATA, [1, 99])
    with pytest.raises(ValueError, match="alpha0 must be a number"):
        make_topics(5, alpha0=np.inf)


def test_stacks_of_matrices():
    with pytest.raises(TypeError, match="dense"):
        givens.joint_diagonalize(sparse.csr_matrix(np.eye(3)))
    with pytest.raises((TypeError, ValueError), match="sample_weight"):
        givens.joint_diagonalize([np.eye(2)], sample_weight="x")


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


def test_a_decomposition_of_no_components():
    pca = PCA(0).fit(DATA)
    with pytest.raises(ValueError, match="no components to rotate"):
        givens.FactorRotation().fit(pca)


def test_counts_in_the_other_byte_order():
    counts = make_topics(30, n_components=2, n_words=10).X.toarray() + 1
    model = givens.TopicModel(2).fit(counts.astype(">f8"))
    np.testing.assert_array_equal(model.components_, givens.TopicModel(2).fit(counts).components_)


def test_counts_in_half_precision():
    counts = make_topics(30, n_components=2, n_words=10).X.toarray() + 1
    for fit in ("fit", "partial_fit"):
        model = getattr(givens.TopicModel(2), fit)(counts.astype(np.float16))
        expected = getattr(givens.TopicModel(2), fit)(counts.astype(np.float32))
        np.testing.assert_array_equal(model.components_, expected.components_)


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


def test_parameters_of_another_type():
    counts = make_topics(30, n_components=2, n_words=10).X.toarray() + 1
    with pytest.raises(ValueError, match="variance must be one of"):
        givens.SphericalMixture(2, variance=[1, 2]).fit(DATA)
    with pytest.raises(ValueError, match="vocabulary must be a list of words"):
        givens.TopicModel(2, vocabulary=0.3).fit(counts)
    with pytest.raises(ValueError, match="n_components must be a whole number from 1 to"):
        givens.TopicModel(1e300).fit(counts)
    with pytest.raises(ValueError, match="Expected 2D array"):
        givens.TopicModel(2).fit(counts).transform(np.array(1.0))


def test_a_solver_that_fails(monkeypatch):
    def fail(self, X):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(PCA, "fit", fail)
    with pytest.raises(ValueError, match=r"svd_solver='arpack' found no components.*did not converge"):
        givens.RotatedPCA(1, svd_solver="arpack").fit(np.eye(12, 7))


def test_more_components_than_features_that_vary(rng):
    X = np.ones((12, 7))
    X[:, 2:4] = rng.standard_normal((12, 2))
    with pytest.raises(ValueError, match=r"have 2 components with variance.* than the 3 to rotate"):
        givens.RotatedPCA(3).fit(X)
    assert givens.RotatedPCA(2, normalize=False).fit(X).components_.shape == (2, 7)


@pytest.mark.parametrize("solver", ["auto", "full", "arpack", "randomized"])
def test_a_constant_table_has_no_components_to_rotate(solver):
    with pytest.raises(
        ValueError, match="every feature of X is constant, so there is no variance to explain"
    ):
        givens.RotatedPCA(1, svd_solver=solver).fit(np.ones((12, 7)))


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


@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_a_mixture_of_subnormal_numbers(fit):
    X = np.ldexp(np.random.default_rng(0).integers(-(2**20), 2**20, (30, 3)).astype(float), -1060)
    model = getattr(givens.SphericalMixture(1, random_state=0), fit)(X)
    np.testing.assert_allclose(model.means_, X.mean(axis=0)[None], atol=1e-320)


def test_cumulants_of_numbers_without_fourth_powers():
    with pytest.raises(ValueError, match="so large that their fourth powers exceed"):
        cumulant_matrices(DATA * 1e149)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_scores_and_variances_that_no_number_holds_are_refused(form):
    X = np.random.default_rng(0).standard_normal((12, 6))
    model = givens.SparsePCA(2).fit(X)
    X[3] = 1.7e308
    with pytest.raises(ValueError, match="scores exceed what float64 holds"):
        model.transform(form(X))
    with pytest.raises(ValueError, match="so large that their sums exceed"):
        metrics.adjusted_variance(np.full((3, 6), 1.7e308), np.eye(6))


def test_greedy_power_with_a_threshold_whose_square_is_no_number_finds_nothing(rng):
    found = gpower(rng.standard_normal((42, 6)), 1, 1e200, block=False)
    assert not found.Z.any()


def test_metrics_of_loadings_and_data_of_any_size(rng):
    X, Z = rng.standard_normal((30, 4)), rng.standard_normal((3, 4))
    expected = metrics.score_correlation(X, Z)
    for data, loadings in [(1e200, 1e200), (1e-200, 1e-200), (1e-310, 1.0), (1e300, 1e-300)]:
        found = metrics.score_correlation(data * X, loadings * Z)
        assert found == pytest.approx(expected, rel=1e-9 if data > 1e-300 else 1e-2)
    with pytest.raises(ValueError, match="loadings have the norm 1"):
        metrics.loading_overlap(1e200 * Z)
    with pytest.raises(ValueError, match="it is not near orthogonal"):
        metrics.orthogonality_defect(1e200 * X)
    for block in (True, False):
        with pytest.raises(ValueError, match="squares exceed what float64 holds"):
            gpower(1e300 * X, 2, 0.1, block=block)


def test_a_list_where_the_kind_of_counts_should_be_is_refused():
    with pytest.raises(ValueError, match="counts must be one of 'whole', 'any'"):
        givens.TopicModel(2, counts=[1, 2]).fit(np.ones((20, 5)))


def test_a_slope_whose_square_is_no_number_is_searched():
    from givens.objectives.harmonics import periodic

    def g(theta):
        return 1e200 * abs(np.sin(theta / 2 + 0.3))

    found = periodic(g, g(0.0))
    assert np.isfinite(found.theta)
    assert found.gain >= 0


def test_matrices_that_no_number_holds_when_they_are_rotated_are_refused():
    with pytest.raises(ValueError, match="rotated ones exceed what float64 holds"):
        givens.joint_diagonalize(np.full((5, 4, 4), 1e308))


def test_whole_numbers_that_come_as_floats_start_a_stream_of_a_mixture(rng):
    X = rng.standard_normal((42, 6))
    model = givens.SphericalMixture(2, basis_samples=20.0, basis_rank=4.0, random_state=0).partial_fit(X)
    same = givens.SphericalMixture(2, basis_samples=20, basis_rank=4, random_state=0).partial_fit(X)
    np.testing.assert_array_equal(model.means_, same.means_)
    assert givens.SphericalMixture(2, basis_samples=1e9).partial_fit(X).n_features_in_ == 6


def test_sources_whose_fourth_powers_vanish_end_in_a_finite_model(rng):
    X = 1e-100 * rng.standard_normal((40, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = givens.ICA(2, contrast="kurtosis", w_init=np.eye(2), whiten=False).fit(X)
    assert np.isfinite(model.components_).all()


def test_subnormal_data_of_fewer_samples_than_features_for_a_mixture():
    X = np.full((3, 60), 1e-310) * np.arange(1, 4)[:, None]
    model = givens.SphericalMixture(1, random_state=0).fit(X)
    assert np.isfinite(model.means_).all()
    assert np.isfinite(model.variances_).all()


def test_a_stream_of_subnormal_data_under_an_l0_penalty():
    X = np.random.default_rng(0).integers(1, 5, (12, 4)) * 1e-310
    model = givens.StreamingSparsePCA(
        drop="weakest", gamma=("l0", 0.1), gamma_grows=True, inner_rotations=5, random_state=0
    )
    with pytest.warns(UserWarning, match="exceeds the threshold"):
        model.fit(X)
    assert np.isfinite(model.components_).all()


def test_a_stream_with_more_columns_than_anything_holds():
    with pytest.raises(ValueError, match="oversample must be a whole number from 0 to 1000000"):
        givens.StreamingSparsePCA(1, oversample=1e300).fit(DATA)


def test_the_span_of_subnormal_loadings():
    Z = np.random.default_rng(0).standard_normal((2, DATA.shape[1]))
    expected = metrics.projected_variance(DATA, Z)
    assert metrics.projected_variance(DATA, Z * 1e-310) == pytest.approx(expected, rel=1e-8)


def test_gpower_of_data_whose_squares_vanish():
    with pytest.raises(ValueError, match="A has numbers so small"):
        gpower(np.random.default_rng(0).standard_normal((5, 7)) * 1e-310, 2, gamma=0.0)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (givens.ICA(w_init="x"), "w_init must be numbers"),
        (givens.ICA(w_init=[[1.0, np.nan], [0.0, 1.0]]), "w_init must be finite"),
        (givens.SparsePCA(2, threads=1e300), "threads must be a whole number from 1 to 1024"),
        (
            givens.StreamingSparsePCA(2, drop="weakest", inner_rotations=1e300),
            "inner_rotations .* to 2147483647",
        ),
        (givens.StreamingSparsePCA(2, inner_rotations=10**400), "inner_rotations .* to 2147483647"),
        (givens.SparsePCA([1, 2], stability=2), "n_components must be a whole number"),
        (givens.SparsePCA([1, 2], missing="em"), "n_components must be a whole number"),
        (givens.TopicModel(2, alpha0=1e300), "alpha0 must be a number from 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_parameters_that_no_computer_holds(model, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        model.fit(np.abs(DATA).round())

"""ICA, the estimator, beside FastICA and Picard: time to a small gradient, and the contrast that each reaches.

All start at the principal axes and have two threads. Picard (`ortho=True`, the fastest of its forms for this problem;
`extended=True` where sources have light tails too) runs to its tolerance of 1e-7, the largest entry of the gradient per
sample; ours to the same number for the norm of the gradient, which is never smaller. FastICA runs at its default tolerance,
where it stops with a far larger gradient; ours is stopped as soon as its contrast is as low as FastICA's. Limits: Picard 2,000
iterations, FastICA its default of 200, ours 1,000 steps. On image patches a run takes minutes: each method runs once there, and
Picard at most 400 iterations; where a limit was reached, the time up to there counts and the table says so. The contrast is
the mean of log cosh over all entries of the sources (lower is better), with its sign reversed for sources with light tails.

The benchmark is made of parts, each of which is kept as soon as it is done: a run that was interrupted goes on with the others.
GIVENS_ICA_PARTS=laplace,eeg measures only these and keeps them for a later run of all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_sample_images
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from benchmarks._parts import HERE, part
from givens import ICA
from givens.ica.adaptive import GAUSSIAN_MEAN, NonGaussianity
from givens.ica.estimator import SIGN_TOL
from givens.ica.whitening import white_space
from givens.metrics import amari, mutual_information_reduction
from givens.numerics import parallel
from givens.objectives import Columns, LogCosh
from givens.rotations import random_orthogonal
from givens.solve.race import lowest_run
from givens.solve.state import RunOptions

SMALL = bool(os.environ.get("GIVENS_ICA_SMALL"))  # to try the parts: a few samples, and nothing is kept
SAMPLES = 4_000 if SMALL else 50_000
MOST_ITERATIONS = 50 if SMALL else 2000  # of Picard


def run(report):
    asked = os.environ.get("GIVENS_ICA_PARTS")
    names = list(PARTS) if not asked else asked.split(",")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise ValueError(f"there are no parts {unknown}; they are {', '.join(PARTS)}")
    found = {name: part(report, "ica_estimator", name, PARTS[name], keep=not SMALL) for name in names}
    if asked:
        report.note(f"only the parts {asked} of {', '.join(PARTS)}")
    together(report, [found[name] for name in names if found[name]])


def together(report, figures):
    """What should hold on all problems."""
    speed = [found for found in figures if "picard" in found]
    if not speed:
        return
    picards, fasts = ([found[rival] for found in speed] for rival in ("picard", "fastica"))
    mean = float(np.exp(np.mean(np.log(picards))))
    report.claim("faster than Picard to 1e-7, geometric mean", "≥ 5 times", f"{mean:.1f} times", mean >= 5)
    report.claim("slower than Picard on none", "≥ 1 times", f"{min(picards):.1f} times", min(picards) >= 1)
    mean = float(np.exp(np.mean(np.log(fasts))))
    report.claim("faster than FastICA to its own contrast", "≥ 3 times", f"{mean:.1f} times", mean >= 3)
    report.claim("slower than FastICA on none", "≥ 1 times", f"{min(fasts):.1f} times", min(fasts) >= 1)
    for rival in ("Picard", "FastICA"):
        above = max(found[f"contrast_above_{rival}"] for found in speed)
        report.claim(f"contrast above {rival}'s by", "≤ 1e-6", f"{above:.1e} per entry", above <= 1e-6)
        short = max(found[f"reduction_short_of_{rival}"] for found in speed)
        report.claim(f"mutual information reduction short of {rival}'s by", "≤ 0", f"{short:.1e}", short <= 0)


def race_problem(report, name, Z, true, adaptive, large=False):
    """One problem: ours and Picard to a gradient of 1e-7, then ours and FastICA to the contrast at which FastICA stops."""
    start = np.eye(Z.shape[1])
    model = ICA(whiten=False, contrast="adaptive" if adaptive else "logcosh", w_init=start, tol=1e-7)
    limit = min(400, MOST_ITERATIONS) if large else MOST_ITERATIONS
    racers = {"givens": partial(fit, model, Z), "picard": partial(picard_of, Z, adaptive, limit)}
    timings = report.race(racers, repeat=1 if large else 3, warm=0 if large else 1)
    ours, (W, steps, finished) = timings["givens"].value, timings["picard"].value
    S, T = ours.transform(Z), Z @ W.T
    ratio = timings["picard"].best / timings["givens"].best
    mine, other = contrast(S, ours.signs_), contrast(T, signs(T) if adaptive else 1)
    reductions = [mutual_information_reduction(Z, V) for V in (ours.components_, W)]
    report.row(
        problem=name,
        givens_seconds=timings["givens"].best,
        picard_seconds=timings["picard"].best,
        times_faster=ratio,
        givens_steps=ours.n_iter_,
        givens_converged=ours.gradient_norm_ <= 1e-7,
        picard_iterations=steps,
        picard_converged=finished,
        givens_gradient=gradient(S, ours.signs_),
        picard_gradient=gradient(T, signs(T) if adaptive else 1),
        givens_contrast=mine,
        picard_contrast=other,
        givens_reduction=reductions[0],
        picard_reduction=reductions[1],
        givens_amari=None if true is None else amari(ours.components_, true),
        picard_amari=None if true is None else amari(W, true),
    )
    if not finished:
        report.note(f"{name}: Picard-O had not converged after {steps} iterations; its time counts")
    report.ratio(f"ICA, {name}, to 1e-7", "Picard-O", ratio, wanted=5)
    fast = against_fastica(report, name, Z, adaptive, large)
    return {
        "picard": ratio,
        "fastica": fast["times"],
        "contrast_above_Picard": mine - other,
        "contrast_above_FastICA": mine - fast["contrast"],
        "reduction_short_of_Picard": reductions[1] - reductions[0],
        "reduction_short_of_FastICA": fast["reduction"] - reductions[0],
    }


def fit(model, Z):
    """Quietly: whether it converged is in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(Z)


def laplace(report):
    rng = np.random.default_rng(0)
    return race_problem(report, *mixed("Laplace, 64 x 50,000", rng.laplace(size=(SAMPLES, 64)), rng, False))


def tails(report):
    """Heavy and light tails; one sign for all, as kurtosis has it, beside a sign for each."""
    rng = np.random.default_rng(1)
    both = np.column_stack((rng.laplace(size=(SAMPLES, 32)), rng.uniform(-1, 1, (SAMPLES, 32))))
    name, Z, true, _ = mixed("heavy and light tails, 64 x 50,000", both, rng, True)
    found = race_problem(report, name, Z, true, True)
    one, each = (
        amari(fit(ICA(whiten=False, contrast=kind), Z).components_, true) for kind in ("kurtosis", "adaptive")
    )
    extended = amari(picard_of(Z, True)[0], true)
    report.row(mixed_sources=name, amari_kurtosis=one, amari_adaptive=each, amari_extended_picard=extended)
    report.claim(
        "mixed sources: Amari's error with adaptive signs beside extended Picard's",
        "≤ 1.01 times",
        f"{each / extended:.3f} times; {one / each:.1f} times with one sign for all",
        each <= 1.01 * extended < one,
    )
    return found


def student(report):
    rng = np.random.default_rng(2)
    outliers = rng.standard_t(3, size=(SAMPLES, 32))
    return race_problem(report, *mixed("Student t(3), 32 x 50,000", outliers, rng, False))


def eeg(report):
    X, _ = recording(report)
    if X is None:
        return {}
    return race_problem(report, "EEG, 32 x 30,504", white_space(X).coordinates(X), None, False)


def image_patches(report):
    Z = patches(np.random.default_rng(3), SAMPLES, 5 if SMALL else 12)
    return race_problem(report, "image patches, 143 x 50,000", Z, None, False, large=True)


def starts(report):
    X, _ = recording(report)
    if X is not None:
        many_starts(report, X, 3 if SMALL else 20)
    return {}


def bits(report):
    """The same bits for any seed and number of threads; the same components under other BLAS kernels."""
    X, _ = recording(report)
    if X is None:
        return {}
    models = [
        ICA(random_state=seed, threads=threads).fit(X).components_
        for seed, threads in ((0, 1), (1, 2), (2, None))
    ]
    same = all(np.array_equal(models[0], other) for other in models[1:])
    report.claim(
        "EEG: the same bits for three seeds, one thread and two", "yes", "yes" if same else "no", same
    )
    program = "import sys, numpy as np; from givens import ICA; from benchmarks._report import Report; "
    program += "from benchmarks.ica_estimator import recording; X, _ = recording(Report()); "
    program += "np.save(sys.argv[1], ICA().fit(X).components_)"
    paths = os.pathsep.join(path for path in sys.path if path)
    for kernel in ("Prescott", "SkylakeX", "Haswell"):
        file = HERE / "results" / f"ica_{kernel}_{os.getpid()}.npy"
        file.parent.mkdir(exist_ok=True)
        command = [sys.executable, "-c", program, str(file)]
        environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_CORETYPE": kernel}
        done = subprocess.run(command, env=environment, check=False)
        if done.returncode:
            report.note(f"this processor does not run the BLAS kernel {kernel}")
            continue
        other = np.load(file)
        file.unlink()
        apart = float(np.abs(other - models[0]).max() / np.abs(models[0]).max())
        report.row(blas_kernel=kernel, components_apart=apart)
        report.claim(
            f"EEG: components with the BLAS kernel {kernel} apart by", "≤ 1e-6", apart, apart <= 1e-6
        )
    return {}


def mne(report):
    X, rate = recording(report)
    if X is not None:
        beside_mne(report, X, rate)
    return {}


def recording(report):
    """Samples x channels of the EEG, and the sampling rate; None where it is not here."""
    path = report.data("eeg_eeglab_32x30504")
    if path is None:
        return None, None
    with np.load(path) as file:
        X, rate = file["X"].T.astype(float), float(file["srate"])
    return (X[::8] if SMALL else X), rate


def mixed(name, S, rng, adaptive):
    A = rng.standard_normal((S.shape[1], S.shape[1]))
    X = S @ A.T
    white = white_space(X)
    return name, white.coordinates(X), white.whitening @ A, adaptive


def patches(rng, number=50_000, size=12):
    """Patches of two photographs in grey, each without its mean."""
    images = [image.mean(axis=2) for image in load_sample_images().images]
    X = np.empty((number, size * size))
    for k in range(number):
        image = images[k % 2]
        i, j = (rng.integers(0, side - size) for side in image.shape)
        X[k] = image[i : i + size, j : j + size].ravel()
    X -= X.mean(axis=1, keepdims=True)
    return white_space(X).coordinates(X)


def picard_of(Z, adaptive, max_iter=MOST_ITERATIONS, start=None):
    """The unmixing, how many iterations it took, and whether it converged."""
    from picard import picard

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        _, W, _, steps = picard(
            Z.T,
            ortho=True,
            extended=adaptive,
            whiten=False,
            centering=False,
            w_init=np.eye(Z.shape[1]) if start is None else start,
            tol=1e-7,
            max_iter=max_iter,
            return_n_iter=True,
        )
    return W, steps, not heard


def fastica_of(Z, start):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FastICA(whiten=False, w_init=start).fit(Z)


def against_fastica(report, name, Z, adaptive, large):
    """How many times faster we reach the contrast that FastICA stops at; its contrast and its reduction."""
    start = np.eye(Z.shape[1])
    rival = partial(fastica_of, Z, start)
    repeat = 1 if large else 3
    theirs = report.time(rival, repeat=repeat, warm=0 if large else 1)
    T = Z @ theirs.value.components_.T
    sign = signs(T) if adaptive else 1
    level = contrast(T, sign) * Z.size
    # The adaptive contrast is that with signs, minus the value of Gaussian sources with these signs.
    aim = level - GAUSSIAN_MEAN * len(Z) * np.sum(sign) if adaptive else level

    def ours():
        if not adaptive:
            return descend(Z, start, LogCosh(), aim, coarse=True)
        objective = Columns(Z, NonGaussianity(squared=True))
        rough = RunOptions(("descent",), tol=SIGN_TOL)
        with parallel.pool(None):
            begun = lowest_run(objective.coarse() or objective, start, rough, coarse=False)
        return descend(Z, begun.U, NonGaussianity(squared=False), aim)

    if large:
        mine, seconds = report.time(ours, repeat=1), theirs.best
    else:
        timings = report.race({"givens": ours, "FastICA": rival}, repeat=repeat, warm=1)
        mine, seconds = timings["givens"], timings["FastICA"].best
    ratio = seconds / mine.best
    reduction = mutual_information_reduction(Z, theirs.value.components_)
    report.row(
        to_fasticas_contrast=name,
        givens_seconds=mine.best,
        fastica_seconds=seconds,
        times_faster=ratio,
        reached=mine.value.value <= aim,
        fastica_contrast=level / Z.size,
        fastica_reduction=reduction,
        fastica_gradient=gradient(T, sign),
        fastica_iterations=theirs.value.n_iter_,
        fastica_converged=theirs.value.n_iter_ < theirs.value.max_iter,
    )
    report.ratio(f"ICA, {name}, to FastICA's contrast", "FastICA", ratio, wanted=3)
    return {"times": ratio, "contrast": level / Z.size, "reduction": reduction}


def descend(Z, start, contrast, level, coarse=False):
    options = RunOptions(("descent",), callback=lambda now: now.value <= level)
    with parallel.pool(None):
        return lowest_run(Columns(Z, contrast), start, options, coarse=coarse)


def many_starts(report, X, number=20):
    """On EEG with log cosh: which sources every start finds, and whether `stability_` foretells them."""
    Z = white_space(X).coordinates(X)
    n = Z.shape[1]
    default = ICA(whiten=False, contrast="logcosh", stability=5, random_state=0).fit(Z)
    rng = np.random.default_rng(3)
    starts = [random_orthogonal(n, rng) for _ in range(number)]
    ours = [ICA(whiten=False, contrast="logcosh", w_init=start).fit(Z).components_ for start in starts]
    fast = [fastica_of(Z, start).components_ for start in starts]
    picard = [picard_of(Z, False, start=start)[0] for start in starts]
    found = everywhere(default.components_, ours)
    best = min(contrast(Z @ W.T, 1) for W in ours)
    mine = contrast(default.transform(Z), 1)
    report.row(
        eeg_starts=number,
        all_of_ours_find=int(found.sum()),
        all_of_fastica_find=int(everywhere(fast[0], fast[1:]).sum()),
        all_of_picard_find=int(everywhere(picard[0], picard[1:]).sum()),
        default_contrast=mine,
        best_contrast=best,
    )
    for level in (0.9, 0.95, 0.97, 0.98):
        foretold = default.stability_ > level
        both = int(np.sum(found & foretold))
        report.row(
            eeg_stability_above=level,
            foretold_by_stability=int(foretold.sum()),
            precision=both / max(1, int(foretold.sum())),
            recall=both / max(1, int(found.sum())),
        )
    report.claim(
        f"EEG: the default above the best of {number} starts",
        "≤ 1e-4",
        f"{mine - best:.1e}",
        mine - best <= 1e-4,
    )
    several = ICA(whiten=False, contrast="logcosh", n_starts=10, random_state=0)
    racers = {
        "givens": partial(several.fit, Z),
        "FastICA": lambda: [fastica_of(Z, start) for start in starts[:10]],
    }
    timings = report.race(racers, repeat=1)
    ratio = timings["FastICA"].best / timings["givens"].best
    report.row(
        best_of_ten_starts="EEG",
        givens_seconds=timings["givens"].best,
        ten_fastica_seconds=timings["FastICA"].best,
        times_faster=ratio,
    )
    report.ratio("ICA, EEG, ten starts", "ten runs of FastICA", ratio, wanted=5)
    report.claim(
        "EEG: best of ten starts, faster than ten runs of FastICA",
        "≥ 5 times",
        f"{ratio:.2f} times",
        ratio >= 5,
    )


def everywhere(reference, others):
    """Which rows of an unmixing of white data have a match of |r| > 0.99 in every other."""
    least = np.ones(len(reference))
    for W in others:
        r = np.abs(reference @ W.T)
        rows, columns = linear_sum_assignment(-r)
        least = np.minimum(least, r[rows, columns])
    return least > 0.99


def beside_mne(report, X, rate):
    """Components of `givens.mne.fit` matched with those of MNE's own Picard, started where MNE starts it."""
    try:
        import mne
    except ImportError:
        report.note("left out for want of mne: components beside MNE's own")
        return
    import givens.mne

    raw = mne.io.RawArray(X.T * 1e-6, mne.create_info(X.shape[1], rate, "eeg"), verbose=False)
    raw.filter(1.0, None, verbose=False)
    rival = mne.preprocessing.ICA(
        X.shape[1],
        method="picard",
        fit_params={"ortho": True, "extended": False, "tol": 1e-7},
        max_iter=2000,
        random_state=0,
    )
    rival.fit(raw, verbose=False)
    ours = givens.mne.fit(raw, X.shape[1], verbose=False)
    A, B = ours.get_sources(raw).get_data(), rival.get_sources(raw).get_data()
    r = np.abs(np.corrcoef(A, B)[: len(A), len(A) :])
    rows, columns = linear_sum_assignment(-r)
    matched = r[rows, columns]
    # What is taken away with the source of the heaviest tails, an artefact of the eyes, by either.
    worst = int(np.argmax(np.mean(A**4, axis=1) / np.mean(A**2, axis=1) ** 2))
    removed = [
        raw.get_data() - model.apply(raw.copy(), exclude=[int(which)], verbose=False).get_data()
        for model, which in ((ours, worst), (rival, columns[worst]))
    ]
    report.row(
        beside_mnes_picard="EEG",
        r_of_removed_artefacts=float(np.corrcoef(removed[0].ravel(), removed[1].ravel())[0, 1]),
        matched_above_099=int(np.sum(matched > 0.99)),
        components=len(matched),
        median_r=float(np.median(matched)),
        least_r=float(matched.min()),
    )


def problems(report):
    """100 generated problems, 20 of them rank-deficient: how many of each method end without a warning."""
    good = {"givens": 0, "FastICA": 0, "Picard-O": 0}
    number = 10 if SMALL else 100
    for seed in range(number):
        rng = np.random.default_rng(1000 + seed)
        n, samples = int(rng.integers(2, 24)), int(rng.integers(300, 4000))
        S = np.column_stack([source(rng, k, samples) for k in range(n)])
        if seed % 10 == 0:
            S[:, 0] = rng.standard_normal(samples)
        X = S @ rng.standard_normal((n, n))
        if seed % 5 == 0:
            X = X - X.mean(axis=1, keepdims=True)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            good["givens"] += int(ICA().fit(X).gradient_norm_ <= 1e-7)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            FastICA(whiten="unit-variance", random_state=0).fit(X)
            good["FastICA"] += not heard
        good["Picard-O"] += quiet_picard(X)
    report.row(**{f"{name}_without_a_warning_of_100": number for name, number in good.items()})
    report.claim(
        "converged to 1e-7 on generated problems",
        f"{number} of {number}",
        f"{good['givens']} of {number}",
        good["givens"] == number,
    )
    return {}


def source(rng, kind, samples):
    """One of four heavy-tailed densities."""
    if kind % 4 == 0:
        return rng.laplace(size=samples)
    if kind % 4 == 1:
        return rng.logistic(size=samples)
    return rng.standard_t(4, samples) if kind % 4 == 2 else rng.standard_normal(samples) ** 3


def quiet_picard(X):
    from picard import picard

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            picard(X.T, ortho=True, random_state=0)
        except Exception:
            return False
        return not heard


def signs(S):
    slope = np.tanh(S)
    return np.where(np.mean(1 - slope**2 - slope * S, axis=0) >= 0, 1, -1)


def contrast(S, sign):
    return float(np.mean((np.abs(S) + np.log1p(np.exp(-2 * np.abs(S))) - np.log(2)) * sign))


def gradient(S, sign):
    """The largest entry of the gradient, per sample."""
    M = (np.tanh(S) * sign).T @ S / len(S)
    return float(np.abs(M - M.T).max())


PARTS = {
    "laplace": laplace,
    "tails": tails,
    "student": student,
    "eeg": eeg,
    "patches": image_patches,
    "problems": problems,
    "starts": starts,
    "bits": bits,
    "mne": mne,
}

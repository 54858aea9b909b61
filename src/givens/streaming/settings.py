"""Parameters of a stream, checked: what holds for all of it, the rule that keeps columns, and the loadings that are asked for.

Functions take the estimator and read its parameters as they are at the time of the call.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from givens.numerics import parallel
from givens.sparse_pca.options import check_sparsity, checked_alpha, counts_of_components
from givens.streaming.components import Asked
from givens.streaming.rules import DROPS, Frequent, Weakest, default_reserve, quantile
from givens.streaming.sketch import Rule, Sketch
from givens.support.arguments import finite, whole

COMPONENTS = 10
MAX_OVERSAMPLE = 1_000_000  # a larger number is a mistake


@dataclass(frozen=True)
class StreamSettings:
    """Settings that the first sample fixes for the whole stream.

    Attributes
    ----------
    components, columns : int
        How many components are asked for, and how many columns are kept.
    drop : str
        The name of the rule.
    forgetting : float
    scale : bool
    seed : int
        Of the random pairs and starts.
    """

    components: int
    columns: int
    drop: str
    forgetting: float
    scale: bool
    seed: int

    def parameters(self) -> dict[str, Any]:
        """The settings by the names of the estimator's parameters."""
        return {
            "n_components": self.components,
            "oversample": self.columns - self.components,
            "drop": self.drop,
            "forgetting": self.forgetting,
            "scale": self.scale,
        }


def stream_settings(model: Any, features: int, began: StreamSettings | None) -> StreamSettings:
    """The settings for data of this width; they must agree with those that the stream `began` with, if it has begun."""
    m = min(COMPONENTS, features)
    if model.n_components is not None:
        m = whole(
            model.n_components, "n_components", 1, features, f"the number of features (n_features={features})"
        )
    if model.drop not in DROPS:
        raise ValueError(f"drop must be 'frequent' or 'weakest', got {model.drop!r}")
    if model.oversample is None:
        # Algorithm 5 keeps m columns and no others.
        reserve = default_reserve(m) if model.drop == "frequent" else 0
    else:
        reserve = whole(model.oversample, "oversample", 0, MAX_OVERSAMPLE)
    columns = min(m + reserve, features)  # as many as features lose nothing
    forgetting = model.forgetting
    if not isinstance(forgetting, Real) or isinstance(forgetting, bool) or not 0 < float(forgetting) <= 1:
        raise ValueError(f"forgetting must be a number above 0 and at most 1, got {forgetting!r}")
    if model.inner_rotations is not None:
        whole(model.inner_rotations, "inner_rotations", 0)
    parallel.count(model.threads)
    seed = _seed(model.random_state) if began is None else began.seed
    settings = StreamSettings(m, columns, model.drop, float(forgetting), bool(model.scale), seed)
    if began is not None:
        _refuse_changes(began.parameters(), settings.parameters())
    return settings


def _seed(random_state: Any) -> int:
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def _refuse_changes(began: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse other values of the parameters that hold for the whole stream."""
    changed = [name for name in began if began[name] != now[name]]
    if len(changed) > 1:
        changed = [name for name in changed if name != "oversample"]  # its default follows from the others
    if changed:
        raise ValueError(
            "the stream began with "
            + " and ".join(f"{name}={began[name]!r}, not {now[name]!r}" for name in changed)
            + ", and that holds for all of it: set it back, or begin anew by fit with warm_start=False"
        )


def asked_loadings(model: Any, settings: StreamSettings, features: int) -> Asked:
    """The loadings that are asked for; the level is 0 until the kept columns, on which it may depend, are known."""
    check_sparsity(model, ("gamma", "alpha", "n_nonzero"))
    counts = None
    if model.n_nonzero is not None:
        counts = counts_of_components(model.n_nonzero, settings.components, features)
    if model.gamma is not None:
        finite(model.gamma, "gamma")
    checked_alpha(model.alpha)
    n_starts = whole(model.n_starts, "n_starts", 1)
    if n_starts > 1 and settings.drop != "frequent":
        raise ValueError(
            f"n_starts = {n_starts} goes with drop='frequent': with drop='weakest' the components are columns of the stream "
            "as they are, and nothing is begun anew"
        )
    return Asked(
        m=settings.components,
        level=0.0,
        l0=model.penalty == "l0",
        counts=counts,
        keep_order=model.n_nonzero is not None and np.ndim(model.n_nonzero) > 0,
        refit=bool(model.refit),
        tol=finite(model.tol, "tol"),
        max_sweeps=whole(model.max_sweeps, "max_sweeps", 0),
        n_starts=n_starts,
        threads=model.threads,
        progress=False,
        seed=settings.seed,
    )


def threshold(model: Any, sketch: Sketch, norms: np.ndarray, weight: float) -> float:
    """The threshold of |y| in the sketch's unit: γ√t or γ, or a share of the largest norm of a feature over the columns."""
    l0 = model.penalty == "l0"
    if model.gamma is not None:
        gamma = finite(model.gamma, "gamma")
        unit = 1.0 if sketch.scaled else sketch.unit or 1.0
        growth = np.sqrt(weight) if model.gamma_grows else 1.0
        return float((np.sqrt(gamma) if l0 else gamma) * growth / unit)
    alpha = checked_alpha(model.alpha)
    return float((np.sqrt(alpha) if l0 else alpha) * np.sqrt(norms.max()))


def stream_rule(model: Any, settings: StreamSettings, sketch: Sketch) -> Rule:
    """The rule by which the stream keeps columns."""
    if settings.drop == "frequent":
        return Frequent(settings.columns - settings.components)
    if model.n_nonzero is None:
        level = lambda norms, weight, Y: threshold(model, sketch, norms, weight)  # noqa: E731
    else:
        counts = counts_of_components(model.n_nonzero, settings.components, len(sketch.mean))
        share = float(counts.mean()) / len(sketch.mean)
        level = lambda norms, weight, Y: quantile(Y, share)  # noqa: E731
    return Weakest(level, inner_rotations(model, settings), model.penalty == "l0", settings.seed)


def inner_rotations(model: Any, settings: StreamSettings) -> int:
    """How many random pairs are rotated after each sample."""
    if model.inner_rotations is None:
        return 2 * settings.columns
    return whole(model.inner_rotations, "inner_rotations", 0)


def rule_in_words(model: Any, settings: StreamSettings, samples: int, lost: float) -> str:
    """What the stream did with its samples, for `method_`; `lost` is the share of the variance that the kept columns lack."""
    kept = f"{samples} samples, {settings.columns} columns kept"
    if settings.drop == "weakest":
        pairs = inner_rotations(model, settings)
        then = f", then {pairs} rotations of random pairs" if pairs else ""
        return f"{kept}, the weakest replaced by each sample{then} (Algorithm 5)"
    loss = Frequent(settings.columns - settings.components).largest_loss(max(lost, 0.0))
    return f"{kept} as principal axes (Frequent Directions), which lack at most {loss:.2%} of the variance in any direction"

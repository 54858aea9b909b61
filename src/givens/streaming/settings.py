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
from givens.sparse_pca.options import FitOptions, counts_of, fit_options, penalty_and_number, threshold
from givens.sparse_pca.truncated_power import largest_beyond
from givens.streaming.rules import DROPS, Frequent, Weakest, default_reserve
from givens.streaming.sketch import Rule, Sketch
from givens.support.arguments import whole

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


def stream_options(
    model: Any, settings: StreamSettings, norms: np.ndarray, unit: float = 1.0, weight: float = 1.0
) -> FitOptions:
    """The options for components of kept columns, of features with these norms in this unit, after samples of this weight."""
    options = fit_options(model, settings.components, norms, unit, _growth(model, weight), stream=True)
    if options.n_starts > 1 and settings.drop != "frequent":
        raise ValueError(
            f"n_starts = {options.n_starts} goes with drop='frequent': with drop='weakest' the components are columns of the "
            "stream as they are, and nothing is begun anew"
        )
    return options


def strongest(Y: np.ndarray, options: FitOptions) -> np.ndarray:
    """Which m columns have the largest value of the objective."""
    sizes, level = np.abs(Y), options.level
    excess = sizes**2 - level**2 if options.l0 else np.maximum(sizes - level, 0.0) ** 2
    return np.argsort(-np.maximum(excess, 0.0).sum(axis=1), kind="stable")[: options.m]


def _growth(model: Any, weight: float) -> float:
    """Columns, and with them the threshold γ, grow as the root of the samples' weight."""
    return float(np.sqrt(weight)) if model.gamma_grows else 1.0


def stream_rule(model: Any, settings: StreamSettings, sketch: Sketch) -> Rule:
    """The rule by which the stream keeps columns."""
    if settings.drop == "frequent":
        return Frequent(settings.columns - settings.components)
    if model.n_nonzero is None:

        def level(norms: np.ndarray, weight: float, Y: np.ndarray) -> float:
            unit = 1.0 if sketch.scaled else sketch.unit  # that of the first sample
            return threshold(model, float(np.sqrt(norms.max())), unit, _growth(model, weight))[1]
    else:
        counts = counts_of(model, settings.components, len(sketch.mean))
        share = float(counts.mean()) / len(sketch.mean)

        def level(norms: np.ndarray, weight: float, Y: np.ndarray) -> float:
            return largest_beyond(Y, round(share * Y.size))

    return Weakest(
        level, inner_rotations(model, settings), penalty_and_number(model)[0] == "l0", settings.seed
    )


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

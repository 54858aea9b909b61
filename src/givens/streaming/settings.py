"""What users may ask of a stream, checked, and turned into what the sketch and the extraction take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from givens.numerics import parallel
from givens.sparse_pca.options import DEFAULT_ALPHA, _counts, _number
from givens.streaming.extract import Asked
from givens.streaming.rules import Frequent, Leftover, Weakest, quantile
from givens.streaming.sketch import Rule, Sketch
from givens.support.arguments import whole

ROTATED = {"weakest": Weakest, "leftover": Leftover}
DROPS = ("frequent", *ROTATED)
FEW = 5  # columns kept beyond those asked for, at least, by default
COMPONENTS = 10


@dataclass(frozen=True)
class StreamSettings:
    """What is settled by the first sample and holds for the whole stream."""

    components: int
    columns: int
    drop: str
    forgetting: float
    scale: bool
    seed: int

    def plain(self) -> dict[str, Any]:
        """As a header can hold it."""
        return asdict(self)

    def parameters(self) -> dict[str, Any]:
        """By the names that users know."""
        return {
            "n_components": self.components,
            "oversample": self.columns - self.components,
            "drop": self.drop,
            "forgetting": self.forgetting,
            "scale": self.scale,
        }


def settings(model: Any, features: int, started: StreamSettings | None) -> StreamSettings:
    """The settings of a model for data of this width; `started` if they agree with those the stream began with."""
    m = min(COMPONENTS, features)
    if model.n_components is not None:
        m = whole(
            model.n_components, "n_components", 1, features, f" (n_features={features}: there are no more)"
        )
    if model.drop not in DROPS:
        raise ValueError(f"drop must be 'frequent', 'leftover' or 'weakest', got {model.drop!r}")
    if model.oversample is None:
        # Algorithm 5 keeps m columns and no others.
        reserve = max(m, FEW) if model.drop == "frequent" else 0
    else:
        reserve = whole(model.oversample, "oversample", 0)
    forgetting = model.forgetting
    if not isinstance(forgetting, Real) or isinstance(forgetting, bool) or not 0 < float(forgetting) <= 1:
        raise ValueError(f"forgetting must be a number above 0 and at most 1, got {forgetting!r}")
    if model.inner_rotations is not None:
        whole(model.inner_rotations, "inner_rotations", 0)
    parallel.count(model.threads)
    seed = started.seed if started is not None else _seed(model.random_state)
    found = StreamSettings(m, m + reserve, model.drop, float(forgetting), bool(model.scale), seed)
    if started is not None and found != started:
        began, now = started.parameters(), found.parameters()
        changed = [name for name in began if began[name] != now[name]]
        if len(changed) > 1:
            changed = [
                name for name in changed if name != "oversample"
            ]  # its default follows from the others
        raise ValueError(
            "the stream began with "
            + " and ".join(f"{name}={began[name]!r}, not {now[name]!r}" for name in changed)
            + ", and that holds for all of it: set it back, or begin anew by fit with warm_start=False"
        )
    return found


def _seed(random_state: Any) -> int:
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def limit(stop_after: Any, total: int | None, before: int = 0) -> int | None:
    """How many samples to learn from at most; None: all. A share is of `total`, those that come after the ones `before`."""
    if stop_after is None:
        return None
    if isinstance(stop_after, Integral) and not isinstance(stop_after, bool):
        return whole(stop_after, "stop_after", 2)
    if not isinstance(stop_after, Real) or isinstance(stop_after, bool) or not 0 < float(stop_after) <= 1:
        raise ValueError(
            f"stop_after must be a whole number of samples, or a share between 0 and 1, got {stop_after!r}"
        )
    if total is None:
        raise ValueError(
            f"stop_after = {stop_after!r} is a share of a stream whose length is not known: give a number of samples"
        )
    return before + max(2, round(float(stop_after) * total))


def asked(model: Any, started: StreamSettings, sketch: Sketch) -> Asked:
    """What loadings a model asks for; the level is 0 until the kept columns are known, where it depends on them."""
    if model.penalty not in ("l1", "l0"):
        raise ValueError(f"penalty must be 'l1' or 'l0', got {model.penalty!r}")
    given = [name for name in ("gamma", "alpha", "n_nonzero") if getattr(model, name) is not None]
    if len(given) > 1:
        raise ValueError(f"give only one of gamma, alpha and n_nonzero, got {' and '.join(given)}")
    counts = None
    if model.n_nonzero is not None:
        counts = _counts(model.n_nonzero, started.components, len(sketch.mean))
    _gamma(model)
    _alpha(model)
    n_starts = whole(model.n_starts, "n_starts", 1)
    if n_starts > 1 and started.drop != "frequent":
        raise ValueError(
            f"n_starts = {n_starts} goes with drop='frequent': with drop={started.drop!r} the components are columns of "
            "the stream as they are, and nothing is begun anew"
        )
    return Asked(
        m=started.components,
        level=0.0,
        l0=model.penalty == "l0",
        counts=counts,
        keep_order=np.ndim(model.n_nonzero) > 0,
        refit=bool(model.refit),
        tol=_number(model.tol, "tol"),
        max_sweeps=whole(model.max_sweeps, "max_sweeps", 0),
        n_starts=n_starts,
        seed=started.seed,
    )


def _gamma(model: Any) -> float | None:
    return None if model.gamma is None else _number(model.gamma, "gamma")


def _alpha(model: Any) -> float:
    alpha = DEFAULT_ALPHA if model.alpha is None else _number(model.alpha, "alpha")
    if alpha > 1:
        raise ValueError(f"alpha is a share of the largest norm of a feature, between 0 and 1, got {alpha!r}")
    return alpha


def level(model: Any, sketch: Sketch, norms: np.ndarray, weight: float) -> float:
    """The threshold of |y| in the sketch's unit: γ√t, or a share of the largest norm of a feature over the columns."""
    gamma = _gamma(model)
    l0 = model.penalty == "l0"
    if gamma is not None:
        unit = 1.0 if sketch.scaled else sketch.unit or 1.0
        return float((np.sqrt(gamma) if l0 else gamma) * np.sqrt(weight) / unit)
    alpha = _alpha(model)
    return float((np.sqrt(alpha) if l0 else alpha) * np.sqrt(norms.max()))


def rule(model: Any, started: StreamSettings, sketch: Sketch) -> Rule:
    """The rule by which the stream keeps columns."""
    if started.drop == "frequent":
        return Frequent(started.columns - started.components)
    if model.n_nonzero is None:
        threshold = lambda norms, weight, Y: level(model, sketch, norms, weight)  # noqa: E731
    else:
        counts = _counts(model.n_nonzero, started.components, len(sketch.mean))
        share = float(counts.mean()) / len(sketch.mean)
        threshold = lambda norms, weight, Y: quantile(Y, share)  # noqa: E731
    rotations = model.inner_rotations
    if rotations is None:
        rotations = 2 * started.columns if started.drop == "weakest" else 0
    return ROTATED[started.drop](threshold, int(rotations), model.penalty == "l0", started.seed)

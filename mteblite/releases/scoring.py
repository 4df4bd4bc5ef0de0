"""Scoring models on a release: rebuild the selected items, encode their texts, observe, predict.

It needs the release's folder and the tasks' data, but no warehouse and no reference model.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mteblite.lite_scores.chance import ChanceTest
from mteblite.lite_scores.comparison import Comparison, compare_observed
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.model_scores import score_model
from mteblite.lite_scores.observing import observe_selection
from mteblite.models.checkpoint_folder import named_model
from mteblite.models.encoder_objects import object_encoder
from mteblite.models.encoders import EncodingSettings, open_encoder
from mteblite.models.model_identity import identify
from mteblite.models.pool_vectors import collapse, collapse_warning, pool_vectors
from mteblite.releases.release_files import read_release
from mteblite.releases.released_task import rebuild_pool
from mteblite.releases.suite_release import SuiteRelease
from mteblite.suites.means import ENDS
from mteblite.tasks.pinned_tasks import PinnedTasks, check_data_names, located
from mteblite.vectors.store import VectorStore

if TYPE_CHECKING:
    from mteblite.models.stored_encoder import StoredEncoder


@dataclass(frozen=True)
class Scores:
    """Predicted full scores of one model, as fractions, with their intervals.

    Attributes:
        model: the model's name.
        release: version of the release that predicted them.
        suite: name of the suite.
        headline: the suite's main mean: `macro_mean` (over task types) or `mean`.
        value: the headline's predicted full score.
        lower: lower end of its interval.
        upper: upper end of its interval.
        level: nominal level of all intervals, e.g. 0.9.
        means: mean, mean_lower, mean_upper, macro_mean, macro_lower, macro_upper,
            interval_method, n_tasks, out_of_range.
        types: one row per task type: task_type, predicted, lower, upper, interval_method,
            out_of_range.
        tasks: one row per task: task, task_type, predicted, lower, upper, n_items, out_of_range,
            observed, interval_method.
        n_texts: texts of the selections.
        n_encoded: texts that this call encoded.
        seconds: duration of this call.
        warnings: sentences about what the scores silently depend on.
        observed: per task the outcomes (k,) or observations (k, d) on its selection.
    """

    model: str
    release: str
    suite: str
    headline: str
    value: float
    lower: float
    upper: float
    level: float
    means: Mapping[str, Any]
    types: pd.DataFrame
    tasks: pd.DataFrame
    n_texts: int
    n_encoded: int
    seconds: float
    warnings: tuple[str, ...]
    observed: Mapping[str, np.ndarray] = field(repr=False)


def load_release(folder: Path | str) -> SuiteRelease:
    """Read a release that `mteblite export` wrote, and compare every file with its checksum.

    Raises:
        ReleaseError: the folder is no release, is damaged, or needs a newer mteblite.
        TypeError: the argument is no path.
    """
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(
            f"release {folder!r}: expected a folder that `mteblite export` wrote, str or Path"
        )
    return read_release(Path(folder))


def score(
    model: Any,
    release: SuiteRelease | Path | str,
    *,
    data: Mapping[str, Path | str] | None = None,
    cache: Path | str | None = None,
    settings: EncodingSettings | None = None,
    progress: Callable[[str], None] | None = None,
) -> Scores:
    """Predict the full scores of a model from the selected items of a release.

    Args:
        model: a hub name, the folder of a sentence-transformers checkpoint, `package:<name>`, or a
            loaded model: a SentenceTransformer, an encoder of mteb, or any object whose
            `encode(texts)` returns one vector per text.
        release: a release, or its folder.
        data: folders of the user's own data, by task.
        cache: folder that keeps vectors and file hashes between calls; None = nothing is kept.
            Vectors of loaded models are never kept, because their weights can change.
        settings: batch size, device, precision, backend; None = the MTEBLITE_* variables.
        progress: called with a short text per task.

    Raises:
        ReleaseError: the folder is no release; see `load_release`.
        ValueError: data changed since the release was made, own data have no folder, or the model
            cannot be read or returns unusable vectors.
        TaskDownloadError: a task's data could not be downloaded.
    """
    started = time.perf_counter()
    release = release if isinstance(release, SuiteRelease) else load_release(release)
    folders = {task: Path(folder) for task, folder in (data or {}).items()}
    check_data_names([t.description for t in release.tasks], folders)
    settings = settings or EncodingSettings.from_environment()
    report = progress or (lambda _: None)
    kept = cache if isinstance(model, str | Path) else None
    with _folder(kept) as folder, _opened(model, release, folder, settings, report) as encoder:
        observed, collapsed, n_texts, chance = _observe(release, encoder, folders, report)
        warnings = [*encoder.warnings, *collapse_warning(collapsed, len(release.tasks)), *chance]
    seconds = time.perf_counter() - started
    fitted = [t.fitted for t in release.tasks]
    found = score_model(
        fitted, observed, release.intervals, _joint(release), release.task_types, collapsed
    )
    lower, upper = ENDS[release.headline]
    return Scores(
        model=encoder.spec.name,
        release=release.version,
        suite=release.suite,
        headline=release.headline,
        value=found.suite[release.headline],
        lower=found.suite[lower],
        upper=found.suite[upper],
        level=float(release.intervals["level"].max()),
        means=found.suite,
        types=found.types,
        tasks=found.tasks.assign(task_type=found.tasks["task"].map(release.task_types)),
        n_texts=n_texts,
        n_encoded=encoder.counts.encoded,
        seconds=seconds,
        warnings=(*warnings, *found.warnings),
        observed=observed,
    )


def compare(
    first: Any,
    second: Any,
    release: SuiteRelease | Path | str,
    *,
    siblings: bool = False,
    **options: Any,
) -> Comparison:
    """Return the first model minus the second on the items of a release.

    Args:
        first: a model as `score` takes it, or the `Scores` that it returned.
        second: likewise.
        release: the release that both are scored on, or its folder.
        siblings: whether both are of one family, e.g. two checkpoints of one run. Siblings have
            intervals of their own where enough families of the release show how siblings differ.
        options: those of `score`.

    Raises:
        ValueError: scores of another release; or see `score`.
    """
    release = release if isinstance(release, SuiteRelease) else load_release(release)
    found = [m if isinstance(m, Scores) else score(m, release, **options) for m in (first, second)]
    for scores in found:
        if scores.release != release.version:
            raise ValueError(
                f"the scores of {scores.model!r} are of release {scores.release}, and this is "
                f"{release.version}: score the model on it"
            )
    one, two = found
    return compare_observed(
        [t.fitted for t in release.tasks],
        one.observed,
        two.observed,
        release.intervals,
        siblings=siblings,
        types=release.task_types,
        joint=_joint(release),
    )


def _observe(
    release: SuiteRelease,
    encoder: StoredEncoder,
    folders: Mapping[str, Path],
    report: Callable[[str], None],
) -> tuple[dict[str, np.ndarray], dict[str, str], int, list[str]]:
    """Observations on every task's selection, collapsed tasks, number of texts, warnings."""
    tasks, results, n_texts, chance = PinnedTasks(), {}, 0, ChanceTest()
    collapsed: dict[str, str] = {}
    for task in release.tasks:
        report(f"scoring {task.task} on {len(task.fitted.selection)} items")
        description = located(task.description, folders)
        pool = rebuild_pool(task, tasks.load(description))
        vectors = pool_vectors(pool, encoder, tasks.task(description).metadata, description)
        results[task.task] = observe_selection(
            task.fitted.kind, pool, vectors, task.fitted.selection,
            similarity=encoder.similarity_name,
        )  # fmt: skip
        equal = collapse(pool, vectors)
        if equal:
            collapsed[task.task] = equal
        else:
            seen = results[task.task]
            chance.add(task.fitted, pool, vectors, seen, encoder.similarity_name)
        n_texts += len(vectors)
    return results, collapsed, n_texts, chance.warning()


def _joint(release: SuiteRelease) -> JointCalibration | None:
    return None if release.joint is None else JointCalibration.from_json(release.joint)


@contextmanager
def _opened(
    model: Any,
    release: SuiteRelease,
    folder: Path,
    settings: EncodingSettings,
    report: Callable[[str], None],
) -> Iterator[StoredEncoder]:
    """Yield the model as an encoder that stores its vectors in the folder."""
    store = VectorStore(folder / "vectors")

    def report_texts(done: int, total: int) -> None:
        report(f"encoded {done} of {total} texts")

    if not isinstance(model, str | Path):
        with object_encoder(model, store, release.max_tokens, settings, report_texts) as encoder:
            yield encoder
        return
    spec = named_model(model)
    # The model is checked before any task's data are downloaded.
    identity = identify(spec, folder / "cache", settings.backend)
    encoder = open_encoder(
        spec, identity, store, release.max_tokens,
        home=folder / "cache", settings=settings, keep=[spec.name], progress=report_texts,
    )  # fmt: skip
    with closing(encoder):
        yield encoder


@contextmanager
def _folder(cache: Path | str | None) -> Iterator[Path]:
    """Yield the folder of vectors and file hashes; a temporary one where nothing is kept."""
    if cache is not None:
        yield Path(cache)
        return
    with tempfile.TemporaryDirectory(prefix="mteblite-") as scratch:
        yield Path(scratch)

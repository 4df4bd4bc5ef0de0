"""Score one model from a release's folder: no warehouse, and a home only if there is one."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mteblite.suites.suite_file import SuiteModel
from mteblite_assets.cli import printing
from mteblite_assets.cli.checkpoint_folders import checkpoint_folder
from mteblite_assets.cli.score_printing import print_scores
from mteblite_assets.cli.session import UsageError
from mteblite_resources.home import ENVIRONMENT, Home

TASK_COLUMNS = [
    "task", "task_type", "predicted", "lower", "upper", "n_items", "out_of_range", "observed",
    "interval_method",
]  # fmt: skip


def check_options(
    suite: str | None,
    release: str | None,
    family: str | None,
    against: str | None,
    data: Sequence[str],
) -> None:
    """Check that `score` was told either a suite or a release.

    Raises:
        UsageError: both, neither, or an option of the other one.
    """
    if release is not None and any(o is not None for o in (suite, family, against)):
        raise UsageError("--release says all there is: leave --suite, --family and --against out")
    if release is None and (suite is None or data):
        raise UsageError("`mteblite score` needs --suite NAME, or --release FOLDER [--data ...]")


def score_from_release(
    model: str,
    folder: str,
    data: Sequence[str],
    *,
    as_json: bool,
    say: Callable[[str], None],
) -> int:
    """Score a model on a release and print its lite scores.

    Args:
        model: a hub name, a packaged model's name, or a checkpoint's folder.
        folder: the release.
        data: `TASK=FOLDER` for each task of the user's own data.
        as_json: print JSON.
        say: receives lines of progress.

    Returns:
        The exit code, 0.

    Raises:
        ValueError: the folder is no release, the model is none, or data changed; says which.
    """
    from mteblite.lite_scores.model_scores import read_release as read_joint
    from mteblite.lite_scores.model_scores import score_model
    from mteblite.releases.release_files import read_release
    from mteblite.releases.release_scoring import observe_release
    from mteblite_resources.resources import default_encoders

    started = time.perf_counter()
    release = read_release(Path(folder))
    named = suite_model(model)
    with working_home() as home:
        observed = observe_release(
            release, named, home,
            data=own_data(data), settings=default_encoders().get_settings(), progress=say,
        )  # fmt: skip
    joint = None if release.joint is None else read_joint(release.joint)
    fitted = [t.fitted for t in release.tasks]
    scores = score_model(fitted, observed.results, release.intervals, joint, release.task_types)
    total = {
        **scores.suite,
        "level": float(release.intervals["level"].max()),
        "n_texts": observed.n_texts,
        "n_encoded": observed.n_encoded,
        "seconds": time.perf_counter() - started,
    }
    head = {"suite": release.suite, "release": release.version, "model": named.name,
            "headline": release.headline}  # fmt: skip
    scored = scores.tasks.assign(task_type=scores.tasks["task"].map(release.task_types))
    tasks, types = printing.records(scored[TASK_COLUMNS]), printing.records(scores.types)
    print_scores(head, tasks, types, total, as_json=as_json)
    return 0


def suite_model(model: str) -> SuiteModel:
    """Return the model that a name or a folder stands for.

    Raises:
        UsageError: it looks like a folder, but there is none.
    """
    folder = checkpoint_folder(model)
    if folder is not None:
        name, place = folder[0] or "model", folder[1]
        return SuiteModel(name=name, family=name, role="candidate", path=place)
    return SuiteModel(name=model, family=model, role="candidate")


def own_data(named: Sequence[str]) -> dict[str, Path]:
    """Return the folders of `TASK=FOLDER` arguments.

    Raises:
        UsageError: an argument of another form.
    """
    folders = {}
    for argument in named:
        task, sign, place = argument.partition("=")
        if not (task and sign and place):
            raise UsageError(f"--data {argument!r}: expected TASK=FOLDER")
        folders[task] = Path(place).expanduser()
    return folders


@contextmanager
def working_home() -> Iterator[Path]:
    """A place for vectors: the home where one is named or there, else a temporary folder."""
    home = Home.from_environment().root
    if os.environ.get(ENVIRONMENT) or home.is_dir():
        yield home
        return
    with tempfile.TemporaryDirectory(prefix="mteblite-") as scratch:
        yield Path(scratch)

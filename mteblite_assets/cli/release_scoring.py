"""Score one model with the folder of a release, without a warehouse."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mteblite_assets.cli import printing
from mteblite_assets.cli.score_printing import print_comparison, print_scores
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
    data: Sequence[str],
    siblings: bool,
) -> None:
    """Check that the options of `score` name either a suite or a release.

    Raises:
        UsageError: both, neither, or an option of the other one.
    """
    if release is not None and (suite is not None or family is not None):
        raise UsageError("--release needs neither --suite nor --family: remove them")
    if release is None and (suite is None or data):
        raise UsageError("`mteblite score` needs --suite NAME, or --release FOLDER [--data ...]")
    if siblings and release is None:
        raise UsageError(
            "--siblings is for --release: a suite knows the families of its models; register them "
            "with `mteblite models add NAME --family FAMILY`"
        )


def score_from_release(
    model: str,
    folder: str,
    data: Sequence[str],
    *,
    against: str | None,
    siblings: bool,
    as_json: bool,
    say: Callable[[str], None],
) -> int:
    """Score a model on a release and print its lite scores, or its difference from another.

    Args:
        model: a hub name, a packaged model's name, or a checkpoint's folder.
        folder: the release.
        data: `TASK=FOLDER` for each task of the user's own data.
        against: the other model, or None.
        siblings: whether both are of one family.
        as_json: print JSON.
        say: receives lines of progress.

    Returns:
        The exit code, 0.

    Raises:
        ValueError: the folder is not a release, the model does not exist, or data have changed.
    """
    import mteblite

    release = mteblite.load_release(folder)
    models = [model] if against is None else [model, against]
    folders = own_data(data)
    with working_home() as home:
        found = [mteblite.score(m, release, data=folders, cache=home, progress=say) for m in models]
    scores = found[0]
    if against is not None:
        other = found[1]
        compared = mteblite.compare(scores, other, release, siblings=siblings)
        print_comparison(
            compared, scores.model, other.model, suite=release.suite,
            warnings=["; ".join(s.warnings) for s in found], as_json=as_json,
        )  # fmt: skip
        return 0
    facts = ("level", "n_texts", "n_encoded", "seconds")
    total = {**scores.means, **{name: getattr(scores, name) for name in facts}}
    total["warnings"] = "; ".join(scores.warnings)
    head = {name: getattr(scores, name) for name in ("suite", "release", "model", "headline")}
    tasks, types = printing.records(scores.tasks[TASK_COLUMNS]), printing.records(scores.types)
    print_scores(head, tasks, types, total, as_json=as_json)
    return 0


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
    """Yield a folder for vectors: the home if it is configured or exists, else a temporary one."""
    home = Home.from_environment().root
    if os.environ.get(ENVIRONMENT) or home.is_dir():
        yield home
        return
    with tempfile.TemporaryDirectory(prefix="mteblite-") as scratch:
        yield Path(scratch)

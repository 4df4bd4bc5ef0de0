"""Full reference scores by mteb's own evaluation, on the stored vectors."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from mteblite.models.stored_encoder import StoredEncoder
from mteblite_resources.results_source import record_checksum, result_path

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask
    from mteb.results import TaskResult


def run_full(task: AbsTask, encoder: StoredEncoder, results: Path) -> Path:
    """Evaluate a model on a whole task and write the result file.

    Args:
        task: mteb task, restricted to the splits and subsets that are needed.
        encoder: the model.
        results: folder in the layout of mteb's ResultCache: `<model>/<revision>/<task>.json`
            and `model_meta.json`. Cells of other subsets in an existing file are kept.

    Returns:
        The result file.

    Raises:
        RuntimeError: mteb's evaluation failed; names task and model, with the cause.
    """
    result = _evaluate(task, encoder)
    path = result_path(results, encoder.spec.name, encoder.result_revision, task.metadata.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.parent / ".lock", timeout=300):
        scratch = path.with_suffix(f".{os.getpid()}")
        _merged(path, result).to_disk(scratch)
        scratch.replace(path)
        record_checksum(path)
        scratch.write_text(json.dumps(encoder.mteb_model_meta.to_dict(), default=str, indent=4))
        scratch.replace(path.parent / "model_meta.json")
    return path


def _evaluate(task: AbsTask, encoder: StoredEncoder) -> TaskResult:
    import mteb

    label = f"full run of {task.metadata.name} with model {encoder.spec.name}"
    try:
        outcome = mteb.evaluate(
            encoder,
            task,
            co2_tracker=False,
            raise_error=True,
            encode_kwargs={"batch_size": encoder.settings.batch_size, "show_progress_bar": False},
            cache=None,
            show_progress_bar=False,
        )
    # mteb passes on any error of its data sets and metrics; the message adds the name of the run.
    except Exception as error:
        raise RuntimeError(f"{label} failed: {type(error).__name__}: {error}") from error
    if len(outcome.task_results) != 1:
        reasons = "; ".join(e.exception for e in outcome.exceptions or [])
        raise RuntimeError(f"{label} gave no result: {reasons or 'mteb gives no reason'}")
    return outcome.task_results[0]


def _merged(path: Path, result: TaskResult) -> TaskResult:
    """Add the cells of an earlier run on other subsets of the same data."""
    from mteb.results import TaskResult

    if not path.exists():
        return result
    earlier = TaskResult.from_disk(path)
    return earlier.merge(result) if earlier.is_mergeable(result) else result

"""Logging and warnings of the terminal."""

from __future__ import annotations

import logging
import os
import sys
import warnings


def set_up_terminal(quiet: bool) -> None:
    """Show our progress lines on stderr, without the bars and warnings of libraries."""
    for name in ("TQDM_DISABLE", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.filterwarnings("ignore", module=r"(mteb|sklearn|datasets|torch)\b")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    progress = logging.getLogger("mteblite.progress")
    progress.handlers[:] = [handler]
    progress.setLevel(logging.WARNING if quiet else logging.INFO)
    progress.propagate = False
    logging.getLogger("dagster.builtin").setLevel(logging.WARNING)
    for noisy in ("mteb", "datasets", "sentence_transformers", "httpx", "huggingface_hub"):
        logging.getLogger(noisy).setLevel(logging.ERROR)


def say(text: str) -> None:
    """Print a line of progress, unless the command is quiet."""
    logging.getLogger("mteblite.progress").info("== %s", text)

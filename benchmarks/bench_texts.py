"""Real text for the benchmarks: what the sample tasks read from installed packages."""

from __future__ import annotations

TASKS = ("PolaritySentences", "AwsTaskToOperation", "LeeDocSTS", "ICD10CMInclusionTerm", "DjangoUI")


def short_texts(number: int) -> list[str]:
    """Return distinct texts of the sample tasks, mostly one sentence, the tasks mixed."""
    import numpy as np

    from mteblite.suites.pool_settings import PoolSettings
    from mteblite.task_types.drawing import draw_pool
    from mteblite.tasks.mteb_tasks import MtebTasks

    whole = PoolSettings(max_items=None, bm25_top=None, max_relevant=None, random_documents=None)
    tasks = MtebTasks()
    texts = [
        text
        for task in TASKS
        for text in draw_pool(tasks.load(tasks.describe(task)), whole).texts["text"]
    ]
    distinct = list(dict.fromkeys(texts))
    order = np.random.default_rng(0).permutation(len(distinct))
    return [distinct[i] for i in order[:number]]


def long_texts(number: int) -> list[str]:
    """Return texts of one to twelve short ones in a row, like documents of a retrieval task."""
    import numpy as np

    rng = np.random.default_rng(1)
    pieces, texts = short_texts(3000), []
    for i in range(number):
        start, length = int(rng.integers(len(pieces) - 12)), 1 + i % 12
        texts.append(f"{i}. " + " ".join(pieces[start : start + length]))
    return texts

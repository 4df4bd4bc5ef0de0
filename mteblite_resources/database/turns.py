"""A lock between processes and threads, in turns: nobody is passed over for long."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class TurnLock:
    """An exclusive lock on a file; the thread that holds it may take it again.

    Who waits is woken by the system, without polling. Before the lock itself everybody takes a
    second one, the queue, whose holder is the next. So a process that releases the lock and wants
    it again at once does not get it before those who wait.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._queue = path.with_name(path.name + ".queue")
        self._own = threading.local()

    @contextmanager
    def held(self, seconds: float) -> Iterator[None]:
        """Hold the lock.

        Raises:
            TimeoutError: others held it for `seconds`.
            OSError: the lock's files cannot be made.
        """
        if not getattr(self._own, "depth", 0):
            try:
                self._own.file = self._take(time.monotonic() + seconds)
            except TimeoutError:
                raise TimeoutError(
                    f"{self.path.name}: other mteblite processes held this lock for "
                    f"{seconds:.0f} s; wait for them or stop them"
                ) from None
            self._own.depth = 0
        self._own.depth += 1
        try:
            yield
        finally:
            self._own.depth -= 1
            if not self._own.depth:
                _release(self._own.file)

    def _take(self, deadline: float) -> int:
        queue = _locked(self._queue, deadline)
        try:
            return _locked(self.path, deadline)
        finally:
            _release(queue)


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold a file's lock together with others."""
    file = _opened(path)
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield
    finally:
        _release(file)


def is_shared(path: Path) -> bool:
    """Say whether anybody holds a file's lock."""
    if not path.exists():
        return False
    file = _opened(path)  # for writing: a network file system locks no other
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        _release(file)
    return False


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _locked(path: Path, deadline: float) -> int:
    file = _opened(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _Wait(file).until(deadline)
    except BaseException:
        os.close(file)
        raise
    return file


def _release(file: int) -> None:
    # A forked process has the same open file, so closing it here alone would not unlock it.
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


class _Wait:
    """A thread waits in the system, because that wait has no time limit of its own."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._guard = threading.Lock()
        self._locked = threading.Event()
        self._given_up = False

    def until(self, deadline: float) -> None:
        """Wait for the lock.

        Raises:
            TimeoutError: it was not free in time; the file is closed.
        """
        threading.Thread(target=self._wait, daemon=True).start()
        try:
            if not self._locked.wait(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
        except BaseException:
            with self._guard:
                self._given_up = True
                if self._locked.is_set():
                    _release(self._file)
            raise

    def _wait(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._guard:
            self._locked.set()
            if self._given_up:
                _release(self._file)

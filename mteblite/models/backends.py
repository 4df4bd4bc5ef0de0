"""Backends of sentence-transformers other than torch: what they need, and how to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util

_PACKAGES = {
    "onnx": {"optimum-onnx": "optimum.onnxruntime", "onnxruntime": "onnxruntime"},
    "openvino": {"optimum-intel": "optimum.intel", "openvino": "openvino"},
}
"""Packages of each backend, and a module of each package."""

_NOTES = {
    "onnx": ". If pip finds no versions that go together (optimum-onnx 0.1 needs transformers 4, "
    "sentence-transformers 6 needs 5), openvino is the other way",
}


def require_backend(model: str, backend: str) -> None:
    """Check that a backend is installed, before minutes of loading.

    Args:
        model: the model's name, for the message.
        backend: `torch`, `onnx` or `openvino`.

    Raises:
        ValueError: packages are absent; names them and the way to get them.
    """
    absent = [name for name, module in _PACKAGES.get(backend, {}).items() if not _has(module)]
    if absent:
        raise ValueError(
            f"backend {backend!r} of model {model!r} needs {' and '.join(absent)}, not installed "
            f"here: {way_out(backend)}"
        )


def way_out(backend: str) -> str:
    """Return what to do about a backend that is not there, or breaks.

    The command pins sentence-transformers, for pip would go back to an old one for the backend.
    """
    version = importlib.metadata.version("sentence-transformers")
    command = f"pip install 'sentence-transformers[{backend}]=={version}'"
    return f"`{command}`, or choose backend torch{_NOTES.get(backend, '')}"


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it is a part of
        return False

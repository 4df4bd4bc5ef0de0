"""Backends of sentence-transformers other than torch: the packages they need."""

from __future__ import annotations

import importlib.metadata
import importlib.util

_PACKAGES = {
    "onnx": {"optimum-onnx": "optimum.onnxruntime", "onnxruntime": "onnxruntime"},
    "openvino": {"optimum-intel": "optimum.intel", "openvino": "openvino"},
}
"""Packages of each backend, and a module of each package."""

_NOTES = {
    "onnx": ". If pip finds no compatible versions (optimum-onnx 0.1 needs transformers 4, "
    "sentence-transformers 6 needs 5), choose openvino",
}


def require_backend(model: str, backend: str) -> None:
    """Check that a backend is installed, before the weights are loaded.

    Args:
        model: the model's name, for the message.
        backend: `torch`, `onnx` or `openvino`.

    Raises:
        ValueError: packages are absent; names them and how to install them.
    """
    absent = [name for name, module in _PACKAGES.get(backend, {}).items() if not _has(module)]
    if absent:
        raise ValueError(
            f"backend {backend!r} of model {model!r} needs {' and '.join(absent)}, not installed "
            f"here: {install_hint(backend)}"
        )


def install_hint(backend: str) -> str:
    """Return the advice for a backend that is absent or cannot be imported.

    The command pins sentence-transformers, because pip would otherwise install an old version.
    """
    version = importlib.metadata.version("sentence-transformers")
    command = f"pip install 'sentence-transformers[{backend}]=={version}'"
    return f"`{command}`, or choose backend torch{_NOTES.get(backend, '')}"


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is absent
        return False

"""Environment variables of the encoding settings."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from mteblite.models.devices import split_devices

PREFIX = "MTEBLITE_"


def _checked_device(value: str) -> str:
    split_devices(value)
    return value


class EncodingVariables(BaseSettings):
    """Batch size, device, precision and backend; an empty variable counts as unset."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True)

    batch_size: int = Field(32, ge=1)
    device: Annotated[str, AfterValidator(_checked_device)] | None = None
    dtype: Literal["float32", "float16", "bfloat16"] | None = None
    backend: Literal["torch", "onnx", "openvino"] = "torch"


def read_encoding_variables() -> dict[str, Any]:
    """Return the values of the variables.

    Raises:
        ValueError: a value is not allowed; names the variable, its value and what is allowed.
    """
    try:
        return EncodingVariables().model_dump()
    except ValidationError as error:
        problem = error.errors()[0]
        name = f"{PREFIX}{problem['loc'][0]}".upper()
        message = problem["msg"].removeprefix("Value error, ")
        raise ValueError(f"{name} is {problem['input']!r}: {message}") from error

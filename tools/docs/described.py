"""Values and calls as the reference writes them."""

from collections.abc import Sequence

from pywebgpu import errors


def called(args: Sequence[object], options: dict[str, object]) -> str:
    words = [described(value) for value in args] + [f"{name}={described(value)}" for name, value in options.items()]
    return f"({', '.join(words)})"


def described(value: object) -> str:
    """A tensor as dtype and shape; any other value as itself."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, tuple | list):
        name = type(value).__name__ if hasattr(value, "_fields") else ""
        inner = ", ".join(map(described, value))
        comma = "," if isinstance(value, tuple) and len(value) == 1 and not name else ""
        return f"{name}({inner}{comma})" if isinstance(value, tuple) else f"[{inner}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {described(one)}" for name, one in value.items()) + "}"
    if callable(value):
        return getattr(value, "__name__", "...")
    text = repr(value)
    return "..." if "\n" in text or " at 0x" in text else text


def told(error: Exception) -> str:
    """Its class, as users can name it, and what it says first."""
    kind = next(one for one in type(error).__mro__ if one.__module__ == "builtins" or hasattr(errors, one.__name__))
    return f"{kind.__name__}: {first_line(error)}"


def first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:160]

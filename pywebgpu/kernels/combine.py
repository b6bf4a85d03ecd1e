"""How two values of a reduction, a scan or a scatter become one."""

from pywebgpu.dtypes import DType, Kind
from pywebgpu.kernels import ir
from pywebgpu.kernels.ir import Expr

_CHECKED = {"add_checked": "p_add_checked", "prod_checked": "p_mul_checked"}


def combine(rule: str, a: Expr, b: Expr) -> Expr:
    """rule: the mode of a scan or scatter; or what a Reduction's record says, which may be WGSL of {0} and {1}."""
    match rule:
        case "add":
            return a + b
        case "prod":
            return a * b
        case "set":
            return b
        case "max" | "min":
            return ir.call(f"p_{rule}" if a.type == ir.F32 else rule, a.type, a, b)
        case "logaddexp":
            return ir.call("p_logaddexp", a.type, a, b)
    return ir.call(_CHECKED[rule], a.type, a, b) if rule in _CHECKED else ir.Call(ir.template(rule), a.type, a, b)


def identity(rule: str, dtype: DType) -> float:
    """What changes no value that it is combined with. rule: a mode, or the name of a Reduction."""
    if rule in ("add", "sum", "prod"):
        return int(rule == "prod")
    is_low = rule in ("max", "argmax", "logaddexp")
    if dtype.kind is Kind.FLOAT:
        return float("-inf" if is_low else "inf")
    is_signed = ir.scalar(dtype) == ir.I32
    return max(dtype.low, -(2**31)) if is_low else min(dtype.high, 2**31 - 1 if is_signed else 2**32 - 1)

"""Factorisations of matrices: computed by NumPy on the host in float64, whatever the device, with gradients of tensors.

A GPU waits for each of them: values are read, factored, and uploaded again. In a browser NumPy has to be loaded first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.autograd.function import Function, FunctionCtx
from pywebgpu.dtypes import Kind
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import thread_state
from pywebgpu.tensor import complex_numbers, create, functions, samples

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

    from pywebgpu.tensor.tensor import Tensor

    Array = NDArray[Any]
    Bound = float | NDArray[Any]
    Gradients = Tensor | tuple[Tensor | None, ...]


class _LinAlgError(RuntimeError):
    """A matrix that has no such factors: singular, or not positive definite."""


LinAlgError = _LinAlgError  # PyTorch's name of the class, and of what users catch
_IN_PYODIDE = sys.platform == "emscripten"


def require(name: str, A: Tensor, *, square: bool = False) -> None:
    """Raises ShapeError for what is no matrix, DTypeError for whole numbers."""
    if A.ndim < 2:
        raise ShapeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if square and A.shape[-1] != A.shape[-2]:
        raise ShapeError(
            f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    if A.dtype.kind is not Kind.FLOAT:
        raise DTypeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype}")
    if A.dtype.itemsize < 4:
        raise DTypeError(f"{name}: Low precision dtypes not supported. Got {A.dtype}")


def host(name: str, compute: Callable[..., Any], *tensors: Tensor) -> tuple[Tensor, ...]:
    """compute(numpy, arrays in float64 or complex128), as tensors of the first one's precision and device."""
    try:
        import numpy as np
    except ModuleNotFoundError:
        raise RuntimeError(f"{name} computes with NumPy, which is not here: load it first, as micropip does") from None
    first = tensors[0]
    level = samples.innermost(tensors) if thread_state.transforms else None
    if level is not None:
        return level.computed(lambda *wholes: host(name, compute, *wholes), tensors)
    arrays = [_array(np, tensor).astype("complex128" if tensor.is_complex() else "float64") for tensor in tensors]
    try:
        with np.errstate(all="ignore"):
            result = compute(np, *arrays)
    except np.linalg.LinAlgError as error:
        raise _LinAlgError(f"{name}: {error}") from None
    parts = result if isinstance(result, tuple | list) else (result,)
    if (
        _IN_PYODIDE
        and any(np.isnan(part).any() for part in parts)
        and not any(np.isnan(array).any() for array in arrays)
    ):
        # NumPy learns of it by a flag of the processor, which WebAssembly has not, and gives NaN there.
        raise _LinAlgError(f"{name}: a matrix is singular, or not positive definite, or has no such factors")
    names = ("float64", "complex128") if dtypes.float64 in (first.dtype, first.dtype.part) else ("float32", "complex64")
    converted = [np.array(part, dtype=names[np.iscomplexobj(part)]) for part in parts]
    return tuple([create.tensor(part, device=first.device) for part in converted])


def _array(np: ModuleType, tensor: Tensor) -> Array:
    """The values; of a tensor without any, ones of its shape that have all factors."""
    if not tensor.is_meta:
        return tensor.detach().numpy()
    rows, columns = (1, 1, *tensor.shape)[-2:]
    return np.broadcast_to(np.eye(rows, columns), (*tensor.shape[:-2], rows, columns)).reshape(tensor.shape)


def svd(np: ModuleType, a: Array, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """NumPy's, with NaN for matrices that have infinities, of which LAPACK may find no end."""
    is_infinite = np.isinf(a).any((-2, -1)) & ~np.isnan(a).any((-2, -1))
    if is_infinite.any():
        a = np.where(is_infinite[..., None, None], 0, a)
    factors = np.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    for part in factors if compute_uv else (factors,):
        part[is_infinite] = np.nan
    return factors


def one(name: str, compute: Callable[..., object], *tensors: Tensor) -> Tensor:
    """As host, of one result."""
    return host(name, compute, *tensors)[0]


def run(function: type[Function], *args: object) -> Tensor:
    """The only result of a function."""
    result: Tensor = function.apply(*args)
    return result


def run_all(function: type[Function], *args: object) -> tuple[Tensor, ...]:
    """The results of a function."""
    results: tuple[Tensor, ...] = function.apply(*args)
    return results


def real(x: Tensor) -> Tensor:
    """The real part, also of real numbers."""
    return x.real if x.is_complex() else x


def eye_like(A: Tensor) -> Tensor:
    n = A.shape[-1]
    return create.eye(n, dtype=A.dtype, device=A.device)


def leading(np: ModuleType, a: Array, rcond: float) -> tuple[Array, Array]:
    """Projections onto the columns that a QR with pivots takes first, and how many they are: as long as the triangle's
    least singular value is not below rcond times its largest."""
    rows, columns = a.shape[-2:]
    onto, ranks = np.zeros((*a.shape[:-2], rows, rows), a.dtype), np.zeros(a.shape[:-2])
    for index in np.ndindex(*a.shape[:-2]):
        rest, q, chosen = a[index].copy(), np.zeros((rows, 0), a.dtype), []
        for _ in range(min(rows, columns)):
            lengths = (abs(rest) ** 2).sum(0)
            column = int(lengths.argmax())
            if not lengths[column] > 0:
                break
            chosen.append(column)
            more = np.hstack([q, rest[:, [column]] / lengths[column] ** 0.5])
            sizes = svd(np, more.conj().T @ a[index][:, chosen], compute_uv=False)
            if len(chosen) > 1 and sizes[0] * rcond > sizes[-1]:
                break
            q = more
            rest = a[index] - q @ (q.conj().T @ a[index])
        onto[index], ranks[index] = q @ q.conj().T, q.shape[1]
    return onto, ranks


class Solve(Function):
    """X of A X = B, for batches of matrices of equal shape."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, B: Tensor) -> Tensor | tuple[Tensor, ...]:
        solution = one("linalg.solve", lambda np, a, b: np.linalg.solve(a, b), A, B)
        ctx.save_for_backward(A, solution)
        return solution

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> Gradients:
        A, X = ctx.saved_tensors
        gB = run(Solve, A.mH, g)
        return -(gB @ X.mH), gB


class SolveTriangular(Function):
    """X of A X = B, of which the upper or the lower triangle of A is read."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, B: Tensor, upper: bool, unit: bool) -> Tensor | tuple[Tensor, ...]:
        def compute(np: ModuleType, a: Array, b: Array) -> Array:
            a = np.triu(a) if upper else np.tril(a)
            if unit:
                n = a.shape[-1]
                a = a * (1 - np.eye(n)) + np.eye(n)
            if (np.diagonal(a, axis1=-2, axis2=-1) == 0).any():
                return np.full(b.shape, np.inf)
            return _substituted(np, a, b, upper=upper)

        solution = one("linalg.solve_triangular", compute, A, B)
        ctx.save_for_backward(A, solution)
        ctx.kind = upper, unit  # type: ignore[attr-defined]  # Users may set any attribute.
        return solution

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> Gradients:
        A, X = ctx.saved_tensors
        upper, unit = ctx.kind  # type: ignore[attr-defined]
        gB = run(SolveTriangular, A.mH, g, not upper, unit)
        gA = -(gB @ X.mH)
        offset = 1 if unit else 0
        return gA.triu(offset) if upper else gA.tril(-offset), gB, None, None


def _substituted(np: ModuleType, a: Array, b: Array, *, upper: bool) -> Array:
    """X of A X = B by substitution, half of a triangle after the other: what a triangle makes 0 is 0, as a
    factorization with pivots does not leave it."""
    n = a.shape[-1]
    if n <= 1:
        return b / a if n else b
    middle = n // 2
    parts = slice(middle), slice(middle, None)
    first, second = reversed(parts) if upper else parts
    x = _substituted(np, a[..., first, first], b[..., first, :], upper=upper)
    rest = b[..., second, :] - a[..., second, first] @ x
    y = _substituted(np, a[..., second, second], rest, upper=upper)
    return np.concatenate([y, x] if upper else [x, y], -2)


class Cholesky(Function):
    """The lower triangular L of A = L L^H, of which the lower triangle is read, or the upper one."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, upper: bool) -> Tensor | tuple[Tensor, ...]:
        def compute(np: ModuleType, a: Array) -> Array:
            factor: Array = np.linalg.cholesky(_of_lower(np, a.swapaxes(-1, -2).conj() if upper else a))
            if np.isnan(factor).any():
                raise np.linalg.LinAlgError("the input is not positive-definite")
            return factor

        factor = one("linalg.cholesky", compute, A)
        ctx.save_for_backward(factor)
        return factor

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> Gradients:
        (L,) = ctx.saved_tensors
        inner = (L.mH @ g).tril()
        inner = 0.5 * (inner + inner.tril(-1).mH)
        left = run(SolveTriangular, L.mH, inner, True, False)
        return run(SolveTriangular, L.mH, left.mH, True, False).mH, None


def _of_lower(np: ModuleType, a: Array) -> Array:
    """The Hermitian matrix of a lower triangle."""
    lower = np.tril(a, -1)
    hermitian = lower + lower.swapaxes(-1, -2).conj()
    diagonal = range(a.shape[-1])
    hermitian[..., diagonal, diagonal] = np.diagonal(a, axis1=-2, axis2=-1).real
    return hermitian


class Slogdet(Function):
    """Sign and logarithm of |det A|."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor) -> Tensor | tuple[Tensor, ...]:
        sign, size = host("linalg.slogdet", lambda np, a: tuple(map(np.asarray, np.linalg.slogdet(a))), A)
        ctx.save_for_backward(A, sign)
        return sign, size

    @staticmethod
    def backward(ctx: FunctionCtx, g_sign: Tensor, g: Tensor) -> Gradients:
        A, sign = ctx.saved_tensors
        if A.is_complex():
            g = complex_numbers.complex(g, -(sign * g_sign.conj()).imag)
        return g.unsqueeze(-1).unsqueeze(-1) * inverse(A).mH


class Det(Function):
    """det A, also where it is 0."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor) -> Tensor | tuple[Tensor, ...]:
        determinant = one("linalg.det", lambda np, a: np.asarray(np.linalg.det(a)), A)
        ctx.save_for_backward(A, determinant)
        return determinant

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> Gradients:
        A, value = ctx.saved_tensors
        factor = g.unsqueeze(-1).unsqueeze(-1)
        if A.numel() == 0:
            return factor * A
        rank_is_full = one("", lambda np, a: np.asarray((np.linalg.cond(a) < 1e6).all()), A)
        if rank_is_full.item():
            return factor * value.conj().unsqueeze(-1).unsqueeze(-1) * inverse(A).mH
        return factor * one("linalg.det", _cofactors, A)


def _cofactors(np: ModuleType, a: Array) -> Array:
    """The derivative of the determinant, from singular values, each product without one of them."""
    u, s, vh = svd(np, a)
    n = a.shape[-1]
    others = np.stack([np.prod(np.delete(s, i, -1), -1) for i in range(n)], -1)
    sign = (np.linalg.det(u) * np.linalg.det(vh)).conj()[..., None, None]
    return sign * ((u * others[..., None, :]) @ vh)


class QR(Function):
    """Q with orthonormal columns and upper triangular R, of A = Q R."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, mode: str) -> Tensor | tuple[Tensor, ...]:
        Q, R = host("linalg.qr", lambda np, a: tuple(np.linalg.qr(a, mode)), A)
        ctx.save_for_backward(A, Q, R)
        ctx.mode = mode  # type: ignore[attr-defined]  # Users may set any attribute.
        return Q, R

    @staticmethod
    def backward(ctx: FunctionCtx, gQ: Tensor, gR: Tensor) -> Gradients:
        A, Q, R = ctx.saved_tensors
        m, n = A.shape[-2:]
        if ctx.mode == "complete" and m > n:  # type: ignore[attr-defined]
            raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
        if m >= n:
            return _qr_backward(Q, R, gQ, gR), None
        Y = A[..., m:]
        gU, gV = gR[..., :m], gR[..., m:]
        gX = _qr_backward(Q, R[..., :m], gQ + Y @ gV.mH, gU)
        return functions.cat([gX, Q @ gV], -1), None


def _qr_backward(Q: Tensor, R: Tensor, gQ: Tensor, gR: Tensor) -> Tensor:
    inner = R @ gR.mH - gQ.mH @ Q
    below = inner.tril(-1)
    inner = below + below.mH + real(inner.diagonal(0, -2, -1)).diag_embed()
    right = gQ + Q @ inner
    return run(SolveTriangular, R, right.mH, True, False).mH


class SVD(Function):
    """U, S and V^H of A = U diag(S) V^H, without what is multiplied by nothing."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, full: bool) -> Tensor | tuple[Tensor, ...]:
        factors = host("linalg.svd", lambda np, a: tuple(svd(np, a, full_matrices=full)), A)
        ctx.save_for_backward(*factors)
        return factors

    @staticmethod
    def backward(ctx: FunctionCtx, gU: Tensor, gS: Tensor, gVh: Tensor) -> Gradients:
        U, S, Vh = ctx.saved_tensors
        k = S.shape[-1]
        U, Vh, gU, gVh = U[..., :k], Vh[..., :k, :], gU[..., :k], gVh[..., :k, :]
        gV, V = gVh.mH, Vh.mH
        squares = S * S
        gaps = squares.unsqueeze(-2) - squares.unsqueeze(-1) + eye_like(U.mH @ U)
        left, right = U.mH @ gU, V.mH @ gV
        row, column = S.unsqueeze(-2), S.unsqueeze(-1)
        skew = left - left.mH
        inner = skew / gaps * row + column * ((right - right.mH) / gaps) + gS.diag_embed()
        if inner.is_complex():  # Vectors may turn together: what the values leave free.
            inner = inner + (skew.diagonal(0, -2, -1) / (2 * S)).diag_embed()
        grad = U @ inner @ Vh
        if U.shape[-2] > k:
            grad = grad + (gU - U @ left) / row @ Vh
        if V.shape[-2] > k:
            grad = grad + U @ ((gV - V @ right) / row).mH
        return grad, None


class SingularValues(Function):
    """S of A = U diag(S) V^H alone: its gradient divides by nothing."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor) -> Tensor | tuple[Tensor, ...]:
        U, S, Vh = host("linalg.svdvals", lambda np, a: tuple(svd(np, a, full_matrices=False)), A)
        ctx.save_for_backward(A, U, S, Vh)
        return S

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> Gradients:
        A, U, _, Vh = ctx.saved_tensors
        if thread_state.grad and (A.requires_grad or g.requires_grad):
            U, _, Vh = run_all(SVD, A, False)  # Its gradient is asked for, too.
        grad: Tensor = (U * g.unsqueeze(-2)) @ Vh
        return grad


class CholeskySolve(Function):
    """X of A X = B by a factor of A. As by PyTorch, the gradient of the factor fills both of its triangles."""

    @staticmethod
    def forward(ctx: FunctionCtx, B: Tensor, L: Tensor, upper: bool) -> Tensor | tuple[Tensor, ...]:
        first = run(SolveTriangular, L.mH if upper else L, B, False, False)
        solution = run(SolveTriangular, L if upper else L.mH, first, True, False)
        ctx.save_for_backward(L, solution)
        ctx.upper = upper  # type: ignore[attr-defined]
        return solution

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> Gradients:
        L, X = ctx.saved_tensors
        upper = ctx.upper  # type: ignore[attr-defined]
        gB = run(CholeskySolve, g, L, upper)
        common = gB @ X.mH
        common = common + common.mH
        return gB, -(L @ common) if upper else -(common @ L), None


class Eigh(Function):
    """Eigenvalues, ascending, and eigenvectors of a Hermitian matrix, of which one triangle is read."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, UPLO: str) -> Tensor | tuple[Tensor, ...]:
        factors = host("linalg.eigh", lambda np, a: tuple(np.linalg.eigh(a, UPLO)), A)
        ctx.save_for_backward(*factors)
        return factors

    @staticmethod
    def backward(ctx: FunctionCtx, gL: Tensor, gV: Tensor) -> Gradients:
        L, V = ctx.saved_tensors
        gaps = L.unsqueeze(-2) - L.unsqueeze(-1) + eye_like(V)
        inner = V.mH @ gV / gaps
        inner = inner - inner.diagonal(0, -2, -1).diag_embed() + gL.diag_embed()
        grad = V @ inner @ V.mH
        return (grad + grad.mH) / 2, None


class Eig(Function):
    """Eigenvalues and eigenvectors of any square matrix, complex also where the matrix is real."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor) -> Tensor | tuple[Tensor, ...]:
        def compute(np: ModuleType, a: Array) -> tuple[Array, ...]:
            if not np.isfinite(a).all():
                raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
            return tuple([part.astype("complex128") for part in np.linalg.eig(a)])

        factors = host("linalg.eig", compute, A)
        ctx.save_for_backward(*factors)
        ctx.is_real = not A.is_complex()  # type: ignore[attr-defined]  # Users may set any attribute.
        return factors

    @staticmethod
    def backward(ctx: FunctionCtx, gL: Tensor, gV: Tensor) -> Gradients:
        L, V = ctx.saved_tensors
        inner = V.mH @ gV
        inner = inner - V.mH @ (V * real(inner.diagonal(0, -2, -1)).unsqueeze(-2))
        roots = L.conj()
        gaps = roots.unsqueeze(-2) - roots.unsqueeze(-1) + eye_like(V)
        inner = inner / gaps
        inner = inner - inner.diagonal(0, -2, -1).diag_embed() + gL.diag_embed()
        grad = run(Solve, V.mH, inner @ V.mH)
        return real(grad) if ctx.is_real else grad  # type: ignore[attr-defined]


class Pinv(Function):
    """The Moore-Penrose inverse: singular values of at most the tolerance count as 0."""

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, atol: Bound, rtol: Bound, hermitian: bool) -> Tensor | tuple[Tensor, ...]:
        def compute(np: ModuleType, a: Array) -> Array:
            if hermitian:
                a = _of_lower(np, a)
            if not a.size:
                return a.swapaxes(-1, -2)
            u, s, vh = svd(np, a, full_matrices=False)
            bound = np.maximum(atol, rtol * s.max(-1, keepdims=True))
            inverted = np.where(s > bound, 1 / np.where(s > bound, s, 1), 0)
            left, right = vh.swapaxes(-1, -2).conj(), u.swapaxes(-1, -2).conj()
            return (left * inverted[..., None, :]) @ right

        pseudo_inverse = one("linalg.pinv", compute, A)
        ctx.save_for_backward(A, pseudo_inverse)
        return pseudo_inverse

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> Gradients:
        A, P = ctx.saved_tensors
        gh, Ph = g.mH, P.mH
        if A.shape[-2] <= A.shape[-1]:
            K = gh @ P
            KP = K @ Ph
            return -((P @ K).mH) + KP - A @ P @ KP + Ph @ P @ (gh - K @ A), None, None, None
        K = P @ gh
        PK = Ph @ K
        return -((K @ P).mH) + (gh - A @ K) @ P @ Ph + PK - PK @ P @ A, None, None, None


def inverse(A: Tensor) -> Tensor:
    return run(Solve, A, eye_like(A).expand(A.shape))

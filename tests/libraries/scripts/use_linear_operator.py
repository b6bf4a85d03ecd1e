"""Matrices by their structure: products, solves, logarithms of determinants."""

import torch
from linear_operator import operators, settings, to_dense
from seeding import normal

print("imported")

a = normal(6, 6)
spd = a @ a.mT / 6 + torch.eye(6)
x = normal(6, 2, seed=1)
kinds = {
    "dense": operators.DenseLinearOperator(spd),
    "diagonal": operators.DiagLinearOperator(torch.arange(1.0, 7.0)),
    "added": operators.DenseLinearOperator(spd).add_diagonal(torch.tensor(0.5)),
    "low rank": operators.AddedDiagLinearOperator(
        operators.RootLinearOperator(a[:, :2]), operators.DiagLinearOperator(torch.ones(6))
    ),
    "kronecker": operators.KroneckerProductLinearOperator(
        operators.DenseLinearOperator(spd[:2, :2]), operators.DenseLinearOperator(spd[:3, :3])
    ),
    "toeplitz": operators.ToeplitzLinearOperator(torch.tensor([3.0, 1.0, 0.5, 0.1, 0.0, 0.0])),
    "triangular": operators.TriangularLinearOperator(torch.linalg.cholesky(spd)),
    "constant": operators.ConstantMulLinearOperator(operators.DenseLinearOperator(spd), torch.tensor(2.0)),
}
for name, operator in kinds.items():
    print(
        name,
        f"{torch.trace(to_dense(operator)).item():.4f} {(operator @ x).sum().item():.4f} {operator.solve(x).sum().item():.4f}",
        flush=True,
    )
with settings.linalg_dtypes(torch.float32):  # Eigenvectors are computed in float64 where nobody says so.
    print(f"{torch.logdet(kinds['dense']).item():.5f} {kinds['dense'].diagonalization()[0].sum().item():.4f}")
print(
    f"{torch.linalg.solve(kinds['dense'], x).sum().item():.5f} {(kinds['dense'] + kinds['diagonal']).to_dense().sum().item():.4f}"
)
leaf = spd.clone().requires_grad_()
quad, logdet = operators.DenseLinearOperator(leaf).inv_quad_logdet(x, logdet=True)
(quad + logdet).backward()
print(f"{quad.item():.5f} {logdet.item():.5f} {leaf.grad.abs().sum().item():.4f}")
print(kinds["dense"][1:3, ::2].to_dense().shape, kinds["kronecker"].mT.shape)

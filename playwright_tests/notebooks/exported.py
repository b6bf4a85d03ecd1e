"""A notebook of marimo, which the test exports for browsers."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import pywebgpu as torch
    from pywebgpu.display import Live, stoppable

    return Live, mo, stoppable, torch


@app.cell
def _(Live, mo, torch):
    x = torch.ones(4, 2)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    live = Live("a line", every=0)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        live.log(loss=losses[-1])
    mo.vstack([live, mo.md("trained" if losses[2] < losses[0] else "not trained"), model.weight.device.type])
    return (x,)


@app.cell
def _(mo, stoppable, x):
    steps = stoppable(range(1_000_000))
    for _ in steps:
        x.sum().item()
    mo.md(f"stopped {steps.stopped}")
    return


if __name__ == "__main__":
    app.run()

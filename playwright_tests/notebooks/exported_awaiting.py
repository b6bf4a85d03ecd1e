"""A notebook of marimo for browsers whose Python cannot wait: it awaits what it reads."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import pywebgpu as torch

    return mo, torch


@app.cell
async def _(mo, torch):
    try:
        torch.ones(3)
        first = "nothing"
    except RuntimeError as error:
        first = str(error)
    await torch.webgpu.init()
    mo.md(first)
    return


@app.cell
async def _(mo, torch):
    await torch.webgpu.init()
    x = torch.ones(4, 2)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(await loss.item_async())
    said = "trained" if losses[2] < losses[0] else "not trained"
    mo.vstack([mo.md(said), mo.plain_text(f"shown {x[0, 0]}"), mo.plain_text(repr(x))])
    return


if __name__ == "__main__":
    app.run()

"""Libraries written for PyTorch: what is installed of each, and the scripts that use it as its first pages say."""

from __future__ import annotations

from dataclasses import dataclass

# What several of them need; none of it needs PyTorch.
_COMMON = (
    "numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 pillow==13.0.0 regex requests tqdm pyyaml packaging "
    "filelock huggingface_hub==2.4.0 fsspec psutil sympy networkx jinja2 typing_extensions matplotlib "
    "importlib_metadata setuptools wgpu>=0.32,<0.33"
)
COMMON = _COMMON.split()


@dataclass(frozen=True, slots=True)
class Library:
    """A distribution, without what it depends on. alone: what its scripts alone see, since others look for it.

    versions: those that are installed. needs: pure distributions besides COMMON. scripts: its programs in scripts/,
    `use_` and its name if empty: a script of the library's own name would hide it. in_pyodide: what it needs there
    besides PURE of in_pyodide.py; None where it is not tried there. advice: where a part fails.
    """

    name: str
    versions: str
    needs: str = ""
    scripts: tuple[str, ...] = ()
    alone: str = ""
    webgpu: bool = False
    in_pyodide: str | None = None
    advice: str = ""

    @property
    def programs(self) -> tuple[str, ...]:
        return self.scripts or (f"use_{self.name.replace('-', '_').lower()}",)

    @property
    def requirements(self) -> list[str]:
        """The pure wheels of a script in Pyodide; compiled libraries are there by other means."""
        own = [] if self.name in ("tokenizers", "safetensors") else [f"{self.name}{self.versions}"]
        return own + (self.in_pyodide or "").split()


ACCELERATE = "accelerate>=1.15,<1.16"
TRANSFORMERS = (
    "transformers_first",
    "transformers_models",
    "transformers_generate",
    "transformers_files",
    "transformers_trainer",
)
LIBRARIES = (
    Library(
        "transformers",
        ">=5.24,<5.25",
        scripts=(*TRANSFORMERS, "transformers_pipelines"),
        webgpu=True,
        in_pyodide=ACCELERATE,
    ),
    Library("tokenizers", ">=0.23,<0.24", scripts=("use_tokenizers", "tokenizers_kinds"), in_pyodide=""),
    Library("safetensors", ">=0.8,<0.9", in_pyodide=""),
    Library("accelerate", ">=1.15,<1.16", in_pyodide=""),
    Library("peft", ">=0.21,<0.22", in_pyodide=f"transformers>=5.24,<5.25 {ACCELERATE}"),
    Library("diffusers", ">=0.42,<0.43"),
    Library("sentence-transformers", ">=6.2,<6.3"),
    Library("torchmetrics", ">=1.9,<1.10", "lightning-utilities==0.15.3"),
    Library("lightning", ">=2.6.6,<2.7", "lightning-utilities==0.15.3 pytorch-lightning==2.6.6"),
    Library("skorch", ">=1.4,<1.5", "tabulate"),
    Library("pyro-ppl", ">=1.9.2,<1.10", "pyro-api==0.1.2 opt_einsum", scripts=("use_pyro",)),
    Library("gpytorch", ">=1.15,<1.16", "linear_operator==0.6.1 jaxtyping wadler_lindig"),
    Library("linear_operator", ">=0.6.1,<0.7", "jaxtyping wadler_lindig"),
    Library("tensordict", ">=0.15,<0.16", "pyvers orjson cloudpickle"),
    Library(
        "fastai",
        ">=2.8.12,<2.9",
        "fastdownload fastcore==2.2.41 fastprogress<1.1 fasttransform plum-dispatch<2.10 beartype",
    ),
    Library("einops", ">=0.8.2,<0.9", webgpu=True, in_pyodide=""),
    Library("torchvision", "==0.29.1", alone="torchvision==0.29.1"),
    Library("timm", ">=1.0.31,<1.1", alone="torchvision==0.29.1", in_pyodide="torchvision==0.29.1"),
    Library(
        "torch_geometric",
        ">=2.8.1,<2.9",
        "xxhash pyparsing aiohttp",
        in_pyodide="",
        advice="Drawing of neighbours needs pyg-lib.",
    ),
    Library("e3nn", ">=0.6,<0.7", "opt_einsum opt_einsum_fx==0.1.4", advice="Its gates have constants that it draws."),
    Library("torchdiffeq", ">=0.2.5,<0.3"),
    Library("kornia", ">=0.9,<0.10", "kornia_rs"),
    Library("pytorch-metric-learning", ">=2.9,<2.10"),
    Library("pytorch-ignite", ">=0.5.5,<0.6", scripts=("use_ignite",)),
    Library("captum", ">=0.9,<0.10"),
    Library(
        "botorch",
        ">=0.18,<0.19",
        "gpytorch==1.15.2 linear_operator==0.6.1 jaxtyping wadler_lindig pyro-ppl pyro-api "
        "pyre-extensions typing_inspect mypy_extensions multipledispatch threadpoolctl",
    ),
    Library("entmax", ">=1.3,<1.4"),
    Library("x-transformers", ">=2.31,<2.32", "einops loguru einx frozendict torch-einops-utils"),
    Library("rotary-embedding-torch", ">=0.9,<0.10", "einops"),
    Library("lion-pytorch", ">=0.2.5,<0.3"),
    Library("torchinfo", ">=1.8,<1.9"),
    Library("torchsde", ">=0.2.6,<0.3", "trampoline"),
    Library("monai", ">=1.6,<1.7"),
    Library("stable_baselines3", ">=2.9,<2.10", "gymnasium farama-notifications cloudpickle"),
    Library("schedulefree", ">=1.4,<1.5"),
    Library("ema-pytorch", ">=0.8,<0.9"),
    Library("pytorch-tabnet", ">=4.1,<4.2"),
    Library("torch-optimizer", ">=0.3,<0.4", "pytorch-ranger"),
    Library("nflows", ">=0.14,<0.15", "UMNN"),
    Library("vector-quantize-pytorch", ">=1.32,<1.33", "einops einx frozendict torch-einops-utils"),
    Library("local-attention", ">=1.11,<1.12", "einops hyper-connections torch-einops-utils"),
    Library("prodigyopt", ">=1.1,<1.2"),
    Library("loralib", ">=0.1.2,<0.2"),
    Library("zuko", ">=1.6,<1.7"),
    Library("normflows", ">=1.7,<1.8"),
    Library("snntorch", ">=1.0,<1.1"),
    Library("torchattacks", ">=3.5,<3.6"),
    Library("torchcde", ">=0.2.5,<0.3", "torchdiffeq torchsde trampoline"),
    Library("opacus", ">=1.6,<1.7", "opt_einsum"),
    Library("pytorch-crf", ">=0.7.2,<0.8"),
    Library("torch-pruning", ">=1.6,<1.7"),
    Library("keras", ">=3.15,<3.16", "absl-py rich h5py optree namex ml_dtypes markdown-it-py mdurl pygments"),
    Library("openai-whisper", "==20250625", "tiktoken numba llvmlite more-itertools", scripts=("use_whisper",)),
    Library("geoopt", ">=0.5.1,<0.6"),
    Library("nnAudio", ">=0.3.4,<0.4"),
    Library("higher", ">=0.2.1,<0.3"),
    Library("vit-pytorch", ">=1.26,<1.27", "einops", alone="torchvision==0.29.1"),
    Library("segmentation-models-pytorch", ">=0.6,<0.7", "timm==1.0.31", alone="torchvision==0.29.1"),
    Library("piq", ">=0.8,<0.9", alone="torchvision==0.29.1"),
    Library("lightly", ">=1.6,<1.7", "lightly_utils timm==1.0.31", alone="torchvision==0.29.1"),
    Library(
        "open-clip-torch", ">=3.3,<3.4", "ftfy wcwidth timm==1.0.31", ("use_open_clip",), alone="torchvision==0.29.1"
    ),
    Library("segment-anything", ">=1.0,<1.1", alone="torchvision==0.29.1"),
    Library("pytorch-optimizer", ">=4.1,<4.2"),
    Library("pytorch-msssim", ">=1.0,<1.1"),
    Library("info-nce-pytorch", ">=0.1.4,<0.2"),
    Library("linformer", ">=0.2.3,<0.3"),
    Library("perceiver-pytorch", ">=0.11,<0.12", "einops"),
    Library("thop", "==0.1.1.post2209072238"),
    Library("neuraloperator", ">=2.0,<2.1", "tensorly tensorly-torch torch-harmonics opt_einsum zencfg ruamel.yaml"),
)

"""A small UNet trained to predict noise, and steps of DDPM and DDIM."""

import tempfile

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMScheduler,
    EulerDiscreteScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)
from seeding import fill, normal

print("imported")

blocks = dict(down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
unet = UNet2DModel(
    sample_size=8,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(8, 16),
    norm_num_groups=4,
    **blocks,
)
fill(unet)
images, noise = normal(4, 1, 8, 8), normal(4, 1, 8, 8, seed=1)
scheduler = DDPMScheduler(num_train_timesteps=100)
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3)
times = torch.tensor([3, 40, 77, 99])
for step in range(3):
    noisy = scheduler.add_noise(images, noise, times)
    loss = torch.nn.functional.mse_loss(unet(noisy, times).sample, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.5f}", flush=True)
unet.eval()
with torch.no_grad():
    for kind in (DDPMScheduler, DDIMScheduler, EulerDiscreteScheduler):
        scheduler = kind(num_train_timesteps=100)
        scheduler.set_timesteps(4)
        sample = images * scheduler.init_noise_sigma
        for time in scheduler.timesteps[:-1] if kind is DDIMScheduler else scheduler.timesteps:
            seen = scheduler.scale_model_input(sample, time)
            out = scheduler.step(unet(seen, time).sample, time, sample)
            sample = out.prev_sample if kind is DDIMScheduler else out.pred_original_sample * 0.1
        print(kind.__name__, f"{sample.mean().item():.5f} {sample.std().item():.5f}", flush=True)
    drawn = (
        DDPMScheduler(num_train_timesteps=100)
        .step(noise, 50, images, generator=torch.Generator().manual_seed(0))
        .prev_sample
    )
    print(drawn.shape, bool(drawn.isfinite().all()))
with tempfile.TemporaryDirectory() as folder:
    unet.save_pretrained(folder)
    again = UNet2DModel.from_pretrained(folder).to(noisy.device)
    print("loaded", torch.equal(again(noisy, times).sample, unet(noisy, times).sample), flush=True)
text = UNet2DConditionModel(
    sample_size=8, in_channels=2, out_channels=2, layers_per_block=1, block_out_channels=(8, 16), cross_attention_dim=8,
    attention_head_dim=4, norm_num_groups=4, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
)  # fmt: skip
fill(text)
out = text(normal(2, 2, 8, 8), torch.tensor([5, 6]), normal(2, 7, 8)).sample
out.pow(2).mean().backward()
print("text", f"{out.std().item():.5f} {text.conv_in.weight.grad.abs().sum().item():.5f}", flush=True)
coder = AutoencoderKL(in_channels=1, out_channels=1, block_out_channels=(8,), latent_channels=2, norm_num_groups=4)
fill(coder)
out = coder(images, sample_posterior=False).sample
print("coder", f"{out.mean().item():.5f}", f"{coder.encode(images).latent_dist.kl().mean().item():.4f}")

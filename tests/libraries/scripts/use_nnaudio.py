import torch
from nnAudio import features

print("imported")

x = torch.sin(torch.arange(8000.0) * 0.05)[None]
print(features.STFT(n_fft=256, verbose=False)(x).shape)
print(f"{features.MelSpectrogram(sr=8000, n_fft=256, n_mels=16, verbose=False)(x).sum().item():.2f}")

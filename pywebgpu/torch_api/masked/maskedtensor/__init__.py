"""torch.masked.maskedtensor: tensors that know which of their elements count."""

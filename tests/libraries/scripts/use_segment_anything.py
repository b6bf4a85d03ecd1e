"""A small model that segments what points name."""

import torch
from seeding import fill, normal
from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer

print("imported")

encoder = ImageEncoderViT(
    img_size=32, patch_size=8, embed_dim=16, depth=1, num_heads=2, out_chans=16, use_rel_pos=True, window_size=2,
    global_attn_indexes=(0,),
)  # fmt: skip
prompts = PromptEncoder(embed_dim=16, image_embedding_size=(4, 4), input_image_size=(32, 32), mask_in_chans=4)
transformer = TwoWayTransformer(depth=1, embedding_dim=16, mlp_dim=16, num_heads=2)
decoder = MaskDecoder(num_multimask_outputs=3, transformer=transformer, transformer_dim=16)
model = fill(Sam(encoder, prompts, decoder).eval(), scale=0.2)
with torch.no_grad():
    gaussian = prompts.pe_layer.positional_encoding_gaussian_matrix
    gaussian.copy_(normal(*gaussian.shape))
points = {"point_coords": torch.tensor([[[4.0, 5.0]]]), "point_labels": torch.ones(1, 1)}
(result,) = model([{"image": normal(3, 32, 32) * 60 + 120, "original_size": (32, 32), **points}], multimask_output=True)
print(result["masks"].shape, f"{result['low_res_logits'].abs().sum().item():.3f}")
print([f"{value:.4f}" for value in result["iou_predictions"].flatten().tolist()])

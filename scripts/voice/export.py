"""Writes a checkpoint folder from lm.pt, codec.pt and tokenizer.json.

    python3 export.py --lm lm.pt --codec codec.pt --tokenizer tokenizer.json --out ../../corpus/voice-mini
"""
import argparse
import json
import os
import shutil

import torch
from safetensors.torch import save_file

import codec_file
import lm_file
from codec_model import Codec
from lm_model import LanguageModel
from lm_train import mini_config

MAX_FRAMES = 320
PIECE_ROWS = 64
KINDS = {"a": "full_attention", "g": "linear_attention"}


def text_config(c):
    return {
        "model_type": "qwen3_5_moe_text", "vocab_size": c.vocab, "hidden_size": c.hidden, "num_hidden_layers": len(c.kinds),
        "num_attention_heads": c.heads, "num_key_value_heads": c.kv_heads, "head_dim": c.head_dim, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": c.state, "linear_value_head_dim": c.state, "linear_num_key_heads": c.key_heads,
        "linear_num_value_heads": c.value_heads, "moe_intermediate_size": c.expert_width, "shared_expert_intermediate_size": c.shared_width,
        "num_experts_per_tok": c.top, "num_experts": c.experts, "rms_norm_eps": c.eps, "max_position_embeddings": 512,
        "rope_parameters": {"rope_type": "default", "rope_theta": c.theta, "partial_rotary_factor": c.rotary / c.head_dim},
        "layer_types": [KINDS[k] for k in c.kinds], "tie_word_embeddings": False}


def config(c, geometry):
    return {
        "architectures": ["FishOmniModel"], "model_type": "fish_omni", "dtype": "bfloat16", "text_config": text_config(c),
        "audio_decoder_config": {
            "dim": c.hidden, "n_head": c.tower_heads, "n_local_heads": c.tower_kv, "head_dim": c.tower_head_dim, "intermediate_size": c.tower_width,
            "norm_eps": c.eps, "num_codebooks": c.books, "vocab_size": c.entries, "shared_enrichment_layers": c.shared_layers,
            "rope_base": c.tower_theta, "rotary_percent": c.tower_rotary / c.tower_head_dim, "vq_backbone_codebooks": 1},
        "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128], "fmt": "e4m3"},
        "semantic_start_token_id": c.semantic_start, "semantic_end_token_id": c.semantic_start + c.entries - 1, "eos_token_id": c.eos,
        "codec_config": {"window_size": geometry.window, "head_dim": geometry.latent // geometry.heads, "encoder_window_size": geometry.encoder_window}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("lm", "codec", "tokenizer", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--top-p", type=float, default=0.9)
    parser.add_argument("--frozen", default="", help="a codec.pth that the codec was polished from: its encoder and books stay byte for byte")
    o = parser.parse_args()
    os.makedirs(o.out, exist_ok=True)
    model, codec = LanguageModel(mini_config()), Codec()
    model.load_state_dict(lm_file.load(o.lm, model.c))
    codec.load_state_dict(codec_file.load(o.codec))
    save_file(lm_file.to_file(model), os.path.join(o.out, "model.safetensors"))
    tensors = codec_file.to_file(codec)
    if o.frozen:
        kept = torch.load(o.frozen, map_location="cpu", weights_only=True)
        tensors.update({key: value for key, value in kept.items() if not key.startswith(codec_file.POLISHED)})
    torch.save(tensors, os.path.join(o.out, "codec.pth"))
    with open(os.path.join(o.out, "config.json"), "w") as file:
        json.dump(config(model.c, codec.geometry), file, indent=1)
    with open(os.path.join(o.out, "generation_config.json"), "w") as file:
        json.dump({"temperature": o.temperature, "top_p": o.top_p, "top_k": 0, "max_frames": MAX_FRAMES, "piece_rows": PIECE_ROWS}, file, indent=1)
    target = os.path.join(o.out, "tokenizer.json")
    if os.path.abspath(target) != os.path.abspath(o.tokenizer):
        shutil.copyfile(o.tokenizer, target)
    sizes = {name: os.path.getsize(os.path.join(o.out, name)) for name in sorted(os.listdir(o.out))}
    print("export: %s, %d bytes in all" % (sizes, sum(sizes.values())))


if __name__ == "__main__":
    main()

"""Language-model weights in the checkpoint's names: block-FP8 experts, BF16 rest; and back, for reading a checkpoint into PyTorch."""
import torch
from safetensors.torch import load_file

BLOCK = 128
MIXER = {"a": "self_attn", "g": "linear_attn"}
SHARED = {"shared_gate": "shared_expert.gate_proj", "shared_up": "shared_expert.up_proj", "shared_down": "shared_expert.down_proj"}
TOWER = {"wqkv": "block.attention.wqkv", "wo": "block.attention.wo", "q_norm": "block.attention.q_norm", "k_norm": "block.attention.k_norm",
         "attention_norm": "block.attention_norm", "ffn_norm": "block.ffn_norm", "w1": "block.feed_forward.w1", "w2": "block.feed_forward.w2",
         "w3": "block.feed_forward.w3", "enorm": "enorm", "hnorm": "hnorm", "out_norm": "out_norm", "eh_proj": "eh_proj"}


def to_fp8(weight):
    """(e4m3 codes, F32 scales per 128 x 128 block) of a matrix whose sides are multiples of 128."""
    n, k = weight.shape
    blocks = weight.float().view(n // BLOCK, BLOCK, k // BLOCK, BLOCK)
    scale = blocks.abs().amax((1, 3), keepdim=True).clamp_min(1e-10) / 448
    codes = (blocks / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    return codes.view(n, k), scale[:, 0, :, 0].contiguous()


def from_fp8(codes, scale):
    return codes.float() * scale.float().repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)


def to_file(model):
    """The tensors of model.safetensors."""
    c, out = model.c, {}
    state = {k: v.detach().float().cpu() for k, v in model.state_dict().items()}
    for name, value in state.items():
        part = name.split(".")
        if part[0] == "layers":
            stem = "model.language_model.layers.%s." % part[1]
            if part[2] == "mlp" and part[3] in ("gate_up", "down"):
                experts(out, stem + "mlp.experts.", part[3], value, c)
            elif part[2] == "mlp":
                out[stem + "mlp." + SHARED.get(part[3], part[3]) + ".weight"] = value.bfloat16()
            elif part[2] == "mixer":
                key = stem + MIXER[c.kinds[int(part[1])]] + "." + ".".join(part[3:])
                if part[3] == "conv":
                    out[key.replace(".conv", ".conv1d.weight")] = value.T[:, None].contiguous().bfloat16()
                else:
                    out[key] = value if part[3] == "A_log" else value.bfloat16()
            else:
                out[stem + ".".join(part[2:])] = value.bfloat16()
        elif part[0] == "tower":
            i = int(part[1])
            stem = "audio_decoder_mtp_shared.layers.%d." % i if i < c.shared_layers else "audio_decoder_mtp.layers.%d." % (i - c.shared_layers)
            out[stem + TOWER[part[2]] + ".weight"] = value.bfloat16()
        elif part[0] == "heads":
            out["audio_decoder_mtp.heads.%s.weight" % part[1]] = value.bfloat16()
    codes = state["codes.weight"]
    codes[-c.entries:] = 0  # the last codebook's rows are never read
    out["audio_decoder.codebook_embeddings.weight"] = codes.bfloat16()
    out["model.language_model.embed_tokens.weight"] = state["embed.weight"].bfloat16()
    out["model.language_model.norm.weight"] = state["norm.weight"].bfloat16()
    head = torch.zeros(c.vocab, c.hidden)
    head[c.semantic_start:c.semantic_start + c.entries] = state["head.weight"][:-1]
    head[c.eos] = state["head.weight"][-1]
    out["lm_head.weight"] = head.bfloat16()
    return out


def experts(out, stem, kind, value, c):
    """Adds one layer's experts in FP8."""
    for e in range(c.experts):
        parts = {"gate_proj": value[e, :c.expert_width], "up_proj": value[e, c.expert_width:]} if kind == "gate_up" else {"down_proj": value[e]}
        for name, weight in parts.items():
            key = "%s%d.%s.weight" % (stem, e, name)
            out[key], out[key + "_scale_inv"] = to_fp8(weight)


def read_expert(tensors, key):
    weight = tensors[key]
    return from_fp8(weight, tensors[key + "_scale_inv"]) if key + "_scale_inv" in tensors else weight.float()


def from_file(tensors, c):
    """The state dict of a LanguageModel from a checkpoint's tensors."""
    tensors = {k.replace("model.language_model.", "model."): v for k, v in tensors.items()}
    out = {}
    for i, kind in enumerate(c.kinds):
        source, target = "model.layers.%d." % i, "layers.%d." % i
        for key, value in tensors.items():
            if not key.startswith(source) or ".experts." in key:
                continue
            name = key[len(source):]
            if name.startswith("mlp."):
                short = {v: k for k, v in SHARED.items()}
                name = name[4:-len(".weight")]
                out[target + "mlp." + short.get(name, name) + ".weight"] = value.float()
            elif name.startswith(MIXER[kind]):
                name = name[len(MIXER[kind]) + 1:]
                if name == "conv1d.weight":
                    out[target + "mixer.conv"] = value.float()[:, 0].T.contiguous()
                else:
                    out[target + "mixer." + name] = value.float()
            else:
                out[target + name] = value.float()
        stem = source + "mlp.experts.%d."
        out[target + "mlp.gate_up"] = torch.stack([torch.cat([read_expert(tensors, stem % e + n + ".weight") for n in ("gate_proj", "up_proj")]) for e in range(c.experts)])
        out[target + "mlp.down"] = torch.stack([read_expert(tensors, stem % e + "down_proj.weight") for e in range(c.experts)])
    for i in range(c.shared_layers + c.books - 1):
        stem = "audio_decoder_mtp_shared.layers.%d." % i if i < c.shared_layers else "audio_decoder_mtp.layers.%d." % (i - c.shared_layers)
        for short, long in TOWER.items():
            out["tower.%d.%s.weight" % (i, short)] = tensors[stem + long + ".weight"].float()
    for k in range(c.books - 1):
        out["heads.%d.weight" % k] = tensors["audio_decoder_mtp.heads.%d.weight" % k].float()
    out["codes.weight"] = tensors["audio_decoder.codebook_embeddings.weight"].float()
    out["embed.weight"] = tensors["model.embed_tokens.weight"].float()
    out["norm.weight"] = tensors["model.norm.weight"].float()
    head = tensors["lm_head.weight"].float()
    out["head.weight"] = torch.cat((head[c.semantic_start:c.semantic_start + c.entries], head[c.eos:c.eos + 1]))
    return out


def load(path, c):
    """The state dict of a LanguageModel from lm.pt (training) or model.safetensors (exported)."""
    if path.endswith(".safetensors"):
        return from_file(load_file(path), c)
    return {k: v.float() for k, v in torch.load(path, map_location="cpu", weights_only=True)["lm"].items()}

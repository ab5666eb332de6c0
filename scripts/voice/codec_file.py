"""codec.pth: a codec's weights in the checkpoint's key names with weight-norm pairs, FP16, and back."""
import torch

# What a polish trains: the rest decides the codes.
POLISHED = ("decoder.", "quantizer.post_module.", "quantizer.upsample.")


def normed(name):
    """Whether a `.conv.weight` is stored as a weight-norm pair (the quantiser's resampling convolutions are not)."""
    return name.endswith(".conv.weight") and not name.startswith("quantizer.")


def norm_of(weight):
    return weight.flatten(1).norm(dim=1).view(-1, *[1] * (weight.dim() - 1))


def to_file(codec, dtype=torch.float16):
    """The state dict as codec.pth holds it."""
    out = {}
    for name, value in codec.state_dict().items():
        value = value.detach().float().cpu()
        if normed(name):
            stem = name[:-len("weight")] + "parametrizations.weight."
            out[stem + "original0"], out[stem + "original1"] = norm_of(value), value
        elif name.endswith(("in_proj.weight", "out_proj.weight")):
            out[name + "_g"], out[name + "_v"] = norm_of(value[..., None]), value[..., None]
        else:
            out[name] = value
    return {key: value.to(dtype).contiguous() for key, value in out.items()}


def from_file(state):
    """A codec's plain state dict, in FP32, from what codec.pth holds."""
    out = {}
    for key, value in state.items():
        value = value.float()
        if key.endswith("original1"):
            g = state[key[:-1] + "0"].float()
            out[key.replace("parametrizations.weight.original1", "weight")] = g * value / norm_of(value)
        elif key.endswith("weight_v"):
            out[key[:-2]] = (state[key[:-1] + "g"].float() * value / norm_of(value))[..., 0]
        elif not key.endswith(("original0", "weight_g")):
            out[key] = value
    return out


def load(path, device="cpu"):
    """A codec's plain state dict from codec.pt (training) or codec.pth (exported)."""
    data = torch.load(path, map_location=device, weights_only=True)
    return data["codec"] if "codec" in data else from_file(data)

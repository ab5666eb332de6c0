"""Snake, x + sin(alpha x)^2 / (alpha + 1e-9), as one Triton kernel each way on a GPU and plainly on a CPU."""
import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

BLOCK = 1024

if triton:
    @triton.jit
    def snake_forward(x, alpha, y, channels, length, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = column < length
        a = tl.load(alpha + row % channels)
        v = tl.load(x + row * length + column, inside, 0).to(tl.float32)
        s = tl.sin(a * v)
        tl.store(y + row * length + column, v + s * s / (a + 1e-9), inside)

    @triton.jit
    def snake_backward(x, alpha, grad, dx, dalpha, channels, length, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = column < length
        a = tl.load(alpha + row % channels)
        v = tl.load(x + row * length + column, inside, 0).to(tl.float32)
        g = tl.load(grad + row * length + column, inside, 0).to(tl.float32)
        r = 1 / (a + 1e-9)
        s = tl.sin(a * v)
        double = tl.sin(2 * a * v)
        tl.store(dx + row * length + column, g * (1 + double * a * r), inside)
        tl.atomic_add(dalpha + row % channels, tl.sum(g * (v * double * r - s * s * r * r)))


class SnakeFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        x = x.contiguous()
        y = torch.empty_like(x)
        batch, channels, length = x.shape
        snake_forward[(batch * channels, triton.cdiv(length, BLOCK))](x, alpha, y, channels, length, BLOCK=BLOCK)
        ctx.save_for_backward(x, alpha)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, alpha = ctx.saved_tensors
        grad = grad.contiguous()
        dx, dalpha = torch.empty_like(x), torch.zeros_like(alpha)
        batch, channels, length = x.shape
        snake_backward[(batch * channels, triton.cdiv(length, BLOCK))](x, alpha, grad, dx, dalpha, channels, length, BLOCK=BLOCK)
        return dx, dalpha


def snake(x, alpha):
    """Snake of x [B, C, T] with alpha [1, C, 1]."""
    if x.is_cuda and triton:
        return SnakeFunction.apply(x, alpha)
    v = x.float()
    return (v + torch.sin(alpha * v).square() / (alpha + 1e-9)).to(x.dtype)

"""Integer coordinates: kernel maps for sparse convolution."""

from tensorhash.coords.kernel_map import (
    KernelMap,
    generate_kernel_map,
    kernel_offsets_from_size,
)

__all__ = [
    "KernelMap",
    "generate_kernel_map",
    "kernel_offsets_from_size",
]

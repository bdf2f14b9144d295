"""Ceilings as published, to compare one's own machine with: dense 16-bit matrix products, and memory bandwidth."""

from __future__ import annotations

from llmcourse.measure.roofline import Ceilings

# From the vendors' data sheets: dense (without sparsity) bfloat16 products with float32 sums, float16 on the T4.
CARDS = {
    "NVIDIA T4": Ceilings(bytes_per_s=320e9, flops_per_s=65e12),
    "NVIDIA RTX 4090": Ceilings(bytes_per_s=1_008e9, flops_per_s=165.2e12),
    "NVIDIA A100 80GB": Ceilings(bytes_per_s=2_039e9, flops_per_s=312e12),
    "NVIDIA H100 SXM": Ceilings(bytes_per_s=3_350e9, flops_per_s=989.4e12),
    "NVIDIA H200": Ceilings(bytes_per_s=4_800e9, flops_per_s=989.4e12),
    "AMD MI300X": Ceilings(bytes_per_s=5_300e9, flops_per_s=1_307.4e12),
    # Apple's page of the M4 Max (40 cores): 546 GB/s. Apple publishes no FLOPs: 40 cores · 128 lanes · 2 · about 1.58 GHz
    # are the 16 TFLOP/s that are commonly given for 32 bits, and 16-bit products run at the same rate.
    "Apple M4 Max": Ceilings(bytes_per_s=546e9, flops_per_s=16e12),
    # A laptop's processor, computed: 8 cores · 2 units · 8 lanes of 32 bits (AVX2) · 2 · 3.5 GHz, which 16-bit numbers do not
    # raise; two channels of DDR5-5600, 2 · 8 bytes · 5.6 GHz.
    "a laptop's CPU": Ceilings(bytes_per_s=89.6e9, flops_per_s=896e9),
}

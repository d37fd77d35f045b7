from __future__ import annotations

from typing import Dict, List, Optional, Tuple, TypedDict


class Options(TypedDict, total=False):
    """Keyword arguments of Engine.from_pretrained beside `device` and `threads`. A test compares them
    with the options of the library (docs/configuration.md)."""

    data_parallel_size: int
    decode_processes: int
    dummy_weights: bool
    seed: int
    vectors: bool
    normalize_vectors: bool
    max_num_batched_tokens: int
    video_pruning_rate: float
    video_pruning_method: str
    encoder_cache_bytes: int
    encoder_device_cache_size: int
    shared_rows: str
    shared_rows_bytes: int
    shared_rows_seconds: int
    measure_graphs: bool
    tower: str
    cache_dir: str
    packing: str
    reuse_units: bool
    attention: str
    quantization: str
    dtype_compute: str
    gpu_wait: str
    sm_budget: int
    team_patches: int
    media_profile: str
    image_backend: str
    rgba_background_color: Tuple[int, int, int]
    min_pixels: Optional[int]
    max_pixels: Optional[int]
    jpeg_scaling: bool
    damaged_frames: str
    max_image_pixels: int
    max_image_side_px: int
    max_image_bytes: int
    max_video_bytes: int
    max_video_frames: int
    max_frame_pixels: int
    max_video_pixels: int
    max_item_bytes: int
    max_patches_per_item: int
    max_patches_at_once: int
    max_decode_bytes: int
    decode_deadline_ms: int
    cudagraph_mm_encoder: bool
    encoder_cudagraph_token_budgets: List[int]
    encoder_cudagraph_path_token_budgets: Dict[str, List[int]]
    encoder_cudagraph_max_vision_items_per_batch: int
    encoder_cudagraph_max_frames_per_batch: Optional[int]

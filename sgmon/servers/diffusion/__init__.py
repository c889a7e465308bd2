"""SGLang's diffusion server (``sglang.multimodal_gen``): so far its log alone."""

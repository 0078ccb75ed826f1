"""How data arrives: the loader's stages, its tuning, and copies to the device beside the computation."""

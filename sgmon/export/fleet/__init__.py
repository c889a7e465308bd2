"""What other machines read of a watch: metrics and the answers that orchestrators ask for. Pure but for ``web``."""

"""SGLang: the first family."""

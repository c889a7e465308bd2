"""The ranks of a start: what each is doing, made once from what the store holds."""

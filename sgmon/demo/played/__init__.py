"""The played servers: files, classes and functions bear the names of the real ones, for the stacks to read like them.

Which frames stand where was taken from py-spy dumps of real starts: SGLang 0.5.17 (H200) and 0.5.23 (CPU), vLLM 0.32
(CPU).
"""

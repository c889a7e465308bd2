"""The played server. Files, classes and functions bear SGLang's names, so that a stack dump reads like a real one.

Which frames stand where was taken from py-spy dumps of real starts (0.5.17 on H200, 0.5.23 on CPU).
"""

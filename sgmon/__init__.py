"""sgmon: watches an SGLang server while it starts. The engine; it never imports Textual."""

__version__ = "0.1.0"

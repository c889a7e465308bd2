"""The rows by what they measure; each module names its groups in GROUPS."""

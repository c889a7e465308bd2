"""Small replacements, in pure Python, of libraries that a far machine need not have. Inside a collector's archive
each has the name of the library; here they are imported by tests alone."""

"""Recordings: format, writer, ring buffer, replay."""

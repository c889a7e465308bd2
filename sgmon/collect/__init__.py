"""What reads the machine: probes in threads, each with a deadline."""

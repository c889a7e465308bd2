"""What leaves sgmon: text report, JSON, evidence bundle."""

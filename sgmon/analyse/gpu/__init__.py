"""GPU readings put in relation: ranks, holders, power levels, spinning."""

"""What a kernel would take on the chip: recorded instructions, their costs, the pipes they run through."""

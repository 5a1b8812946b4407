"""Training: experiment files, data, batches, loss, schedules, the loop, averaging, export."""

"""What formats' own libraries lose of a file that is read and written again unchanged, and ours."""

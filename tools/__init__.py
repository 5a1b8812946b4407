"""What is run on the repository itself: the audit of dependencies and the bill of materials."""

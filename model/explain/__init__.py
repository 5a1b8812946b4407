"""Pictures of what a network does with one sentence, for people who learn how it works."""

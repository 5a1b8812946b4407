"""Capacity of servers: the rate that a size serves, and the size that a rate needs."""

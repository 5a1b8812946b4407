"""Commands about one network: how it is made, measured, shown and given away."""

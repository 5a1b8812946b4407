"""Requests for translation as types, and the work on their texts before and after."""

"""Requests that failed the contract, kept on disk without what they said about anybody."""

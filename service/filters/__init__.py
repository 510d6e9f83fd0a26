"""The filter chain: protocol, schema, PII masking, quality; each link with its own breaker, sampling and audit log."""

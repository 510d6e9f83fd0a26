"""User queries as a stream: Kafka or files -> validation -> dead letters -> cleaning, masking, windows per minute."""

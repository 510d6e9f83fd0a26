"""The real Triton beside the service: its environment, its repository, the process that keeps it alive, the client."""

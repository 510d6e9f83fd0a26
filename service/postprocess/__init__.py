"""From raw logits to a label and its confidence: in the service's process, or in one behind a Unix socket."""

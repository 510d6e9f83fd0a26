"""What follows from openapi.yaml without the service: a server of its examples, and a gateway's rules."""

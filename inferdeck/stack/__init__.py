"""The stack: starts, watches and stops the parts as processes of their own."""

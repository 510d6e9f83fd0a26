"""The stack in containers: `docker-compose.observability.yml`, brought up, watched and stopped."""

"""GPU devices by NVML: read, and shown by the exporter or by a process of its own (`python -m exporters.gpu`)."""

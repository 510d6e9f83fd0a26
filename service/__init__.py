"""The sentiment service: contract, filters, backends and training; the worked example of wiring the probes."""

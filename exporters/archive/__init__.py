"""Rows of hours, in compressed columnar segments on disk: what look-up reads when the rings have gone on."""

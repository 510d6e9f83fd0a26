"""Quality of photos: what a header says, how sharp the picture is, and whether it is worth reading at all.

Needs the extra `images` (OpenCV without windows); nothing else of `probes` imports it.
"""

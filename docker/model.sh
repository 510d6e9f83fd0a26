#!/bin/sh
# Lays the model of the image into $2: the one in $1 when there is one, else one that is trained now.
set -eu
given=$1 model=$2
if [ -f "$given/config.json" ]; then
    mkdir "$model"
    cp "$given"/*.json "$given"/*.npz "$given"/*.onnx "$given/MODEL_CARD.md" "$given/NOTICE" "$model"
else
    python3 -m venv /opt/train
    # one of the corpora is a source distribution, built by setuptools
    /opt/train/bin/python -m pip install --quiet --require-hashes -r /build/requirements-train.lock
    # the wheel again, into the environment that can train
    /opt/train/bin/python -m pip install --quiet --no-deps --no-index /wheel/*.whl
    /opt/train/bin/inferdeck train --out "$model"
fi
chmod 0700 "$model"
chmod 0600 "$model"/*

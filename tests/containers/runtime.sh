#!/bin/sh
# A container runtime for machines that let nobody set resource limits (no CAP_SYS_RESOURCE): takes them out of what
# podman asks for, then runs the real runtime, which stands below.
bundle="" process="" before=""
for word in "$@"; do
    case "$before" in --bundle | -b) bundle=$word ;; --process | -p) process=$word ;; esac
    case "$word" in --bundle=*) bundle=${word#--bundle=} ;; --process=*) process=${word#--process=} ;; esac
    before=$word
done
file=${process:-${bundle:+$bundle/config.json}}
if [ -n "$file" ]; then
    python3 -S - "$file" <<'CODE'
import json, sys
with open(sys.argv[1]) as file:
    document = json.load(file)
document.get("process", document)["rlimits"] = []
with open(sys.argv[1], "w") as file:
    json.dump(document, file)
CODE
fi
exec "@REAL_RUNTIME@" "$@"

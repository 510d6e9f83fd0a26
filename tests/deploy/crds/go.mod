// Only downloaded, never built: each module holds the definitions of its custom resources as YAML, and go.sum pins them.
module inferdeck/crds

go 1.26.0

require (
	github.com/kedacore/keda/v2 v2.18.3
	github.com/prometheus-operator/prometheus-operator v0.93.1
)

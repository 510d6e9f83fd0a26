"""What rendered Kubernetes objects say of a rollout, and of where a pod can run, judged before they are applied."""

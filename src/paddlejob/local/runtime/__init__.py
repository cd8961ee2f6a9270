"""From a pod manifest to processes: images, volumes, environment and the process spec of each container."""

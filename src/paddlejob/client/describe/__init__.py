"""Jobs, their logs and their progress as text for people, and objects as YAML and JSON."""

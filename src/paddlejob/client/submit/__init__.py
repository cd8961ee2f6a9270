"""Reading, validating and applying the objects that `pdj submit` sends to the API server."""

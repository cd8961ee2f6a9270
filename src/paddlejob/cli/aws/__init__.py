"""`pdj aws`: verbs over paddlejob.cloud.aws."""

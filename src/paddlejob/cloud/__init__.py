"""Clusters on a public cloud, one package for each provider."""

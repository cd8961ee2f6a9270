"""Tools for developers of paddlejob; nothing here is shipped."""

"""A directory of the user's, packed, shipped in ConfigMaps and unpacked in pods: no image has to be built."""

"""What the testbed is made of: Go binaries, built once and cached, and Debian packages."""

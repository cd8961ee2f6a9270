"""Where the pages get it from: a protocol, and one package for each target that implements it."""

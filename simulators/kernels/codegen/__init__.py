"""From a network to machine code: rates as programs, source of kernels, compiling, caching."""

"""CPUs: LLVM makes an object file, and a C compiler links it to the host half."""

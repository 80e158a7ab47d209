"""How a library is loaded and called; imports neither tvm nor a compiler."""

"""One oracle: what every door into te-select makes of a case, which NumPy tells.

A case has operands, and may have an oddity, such as an element type that is not the workload's. A
door takes an oddity, and selects as NumPy does; or it refuses the call in words of its own, and
writes nothing. A door for tensors of another library does what that library does.
"""

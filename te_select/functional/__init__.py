"""Select as a function of arrays, and what is made with it."""

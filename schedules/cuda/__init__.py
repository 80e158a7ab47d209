"""The CUDA schedule; `schedule` has the names of `te_select.schedules.seam`."""

"""A dlight rule that schedules Selects."""

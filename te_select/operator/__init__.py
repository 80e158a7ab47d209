"""The operator: shapes, element types, broadcast rules, access pattern and definition."""

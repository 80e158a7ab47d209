"""Reads the XML of OpenVINO IR files, and walks its networks."""

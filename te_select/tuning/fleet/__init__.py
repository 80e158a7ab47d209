"""Fleets: candidates measured on other machines, behind a TVM RPC tracker."""

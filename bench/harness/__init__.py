"""Shared by all suites: cases and samples, the clock, the data on disk, the report, the plots."""

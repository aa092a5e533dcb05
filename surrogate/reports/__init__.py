"""Reports: one self-contained HTML page about samples (`surrogate.reports.page`)."""

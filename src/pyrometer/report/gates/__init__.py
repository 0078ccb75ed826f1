"""The report of a guard in the formats that code hosts and CI systems read."""

"""How a program is set up: modules, dtypes, settings, optimizer, wrappers; read without running a step."""

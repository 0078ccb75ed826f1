"""Our own levers, one file each; what is found here is registered."""

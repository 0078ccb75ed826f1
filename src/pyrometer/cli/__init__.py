"""One module per verb, thin: parse, call the library, render."""

"""How many workers, and how far ahead: searched by measuring, predicted in between, proved in pairs."""

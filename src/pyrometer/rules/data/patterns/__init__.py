"""What the data rules recognise, in source text and in records: shared by several of them, none a rule itself."""

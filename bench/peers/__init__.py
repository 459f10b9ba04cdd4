"""One module per contender: each gives a Table class with the same few verbs."""

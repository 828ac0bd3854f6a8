"""What the features of all models are like: Criteo has 26 sparse ones and 13 numbers."""
SPARSE, DENSE, VOCABULARY, EMBEDDING = 26, 13, 1000, 16
LONGEST = 50  # of a user's history, or of a sequence

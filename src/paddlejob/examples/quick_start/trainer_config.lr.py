"""Logistic regression over the tokens of a review: is it positive?"""

VOCABULARY = 200
BATCH_SIZE = 32
LEARNING_RATE = 0.006

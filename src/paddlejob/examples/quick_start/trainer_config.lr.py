"""Logistic regression over the words of a review: is it for or against?"""

VOCABULARY = 200
BATCH_SIZE = 32
LEARNING_RATE = 0.006

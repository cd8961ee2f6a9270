"""`make mutants`: change the product in small ways and see whether the quick tests notice.

Each mutant is one small change to one file, such as `<` instead of `<=`, in a copy of the repository. The tests that
run the changed line are run against it. A mutant that no test notices has survived: either no test pins that behaviour
down, or the change makes no difference.
"""

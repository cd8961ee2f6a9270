"""The documentation: pages in English and Chinese, checks of them, and the site that `make docs` builds.

markdown.py parses a page, pages.py knows which pages there are, checks.py what must hold for them, stage.py prepares
the pages of one language, and site.py builds both languages with Zensical.
"""

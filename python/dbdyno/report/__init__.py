"""Renderers of pages: HTML, terminal, Markdown, flat rows and figures.

Nothing here computes: a renderer formats and picks. Everything heavy is imported when it is used.

Example:
    >>> from dbdyno.report.html import write_html
    >>> write_html(analysis, "report.html")                 # doctest: +SKIP
"""

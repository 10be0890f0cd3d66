"""Renderers of the analysis model: an HTML page, figures, text for a terminal, flat rows.

Nothing is computed here: a renderer formats and selects. Large dependencies are imported on first use.

Example:
    >>> from dbdyno.report.html import write_html
    >>> write_html(analysis, "report.html")                 # doctest: +SKIP
"""

"""Inline SVG: only drawing elements are kept, and the result is small."""

from __future__ import annotations

from dbdyno.report import figures, svg

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="9" height="9">'


def cleaned(body: str) -> str:
    return svg.clean_svg(f"{HEAD}{body}</svg>", "p", "a label")


def test_scripts_images_links_styles_and_handlers_do_not_come_through():
    result = cleaned(
        "<script>alert(1)</script><image href='http://x/'/><a href='http://x/'><text>t</text></a>"
        "<style>*{}</style><foreignObject/><text onclick='alert(1)' style='x' fill='#000'>t</text>"
        "<path d='M0,0h1v1Z' fill='url(http://x/)'/><use href='#q'/>"
    )
    for word in ("script", "image", "href", "style", "onclick", "http://x", "foreign", "use"):
        assert word not in result
    assert '<text fill="#000">t</text>' in result


def test_text_stays_escaped():
    assert "&lt;/script&gt;&amp;" in cleaned("<text>&lt;/script&gt;&amp;</text>")


def test_identifiers_are_made_unique():
    result = cleaned(
        "<defs><clipPath id='c'><path d='M0,0h1v1Z'/></clipPath></defs><g clip-path='url(#c)'><text>id=c</text></g>"
    )
    assert '<clipPath id="p-0"><path d="M0,0h1v1Z" /></clipPath>' in result
    assert 'clip-path="url(#p-0)"' in result
    assert ">id=c<" in result


def test_neighbours_of_one_look_become_one_path_but_not_across_a_tip_or_another_colour():
    def mark(fill: str, more: str = "") -> str:
        return f"<path d='M0.12345,0h1v1Z' fill='{fill}' {more}/>"

    assert cleaned(mark("#111") + mark("#111")).count("<path") == 1
    assert cleaned(mark("#111") + mark("#222")).count("<path") == 2
    tip = "role='graphics-symbol' aria-label='p50'"
    assert cleaned(mark("#111", tip) + mark("#111", tip)).count('data-tip="p50"') == 2
    assert "M0.12,0h1v1Z" in cleaned(mark("#111"))


def test_a_picture_has_a_name_for_a_screen_reader_and_scales():
    result = cleaned("<text>t</text>")
    assert 'role="img" aria-label="a label"' in result
    assert "viewBox" in result
    assert "width=" not in result


def test_a_heat_map_is_small(experiment):
    chart = figures.draw("heatmap", experiment)
    assert len(svg.inline(chart, "h", "")) < 200_000

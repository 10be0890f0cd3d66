"""Layout faults of a page, measured in a browser: labels that collide or are clipped, tables that are cut off without a
sign that they scroll, and numbers or dates that are broken across lines.

    assert drawn.faults(browser, path) == []      # one sentence each

Rectangles come from the browser's own layout, so that a fault is what a reader would see.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chromium import Browser

WIDTHS = (1400, 820, 400)
"""Window widths of a desktop, a narrow window and a phone [CSS pixels]."""


def faults(browser: Browser, path: Path) -> list[str]:
    """Return the layout faults of a page at all widths, one sentence each."""
    page = browser.open(path, width=WIDTHS[0])
    found = []
    for width in WIDTHS:
        page.look(width=width)
        found += [f"at {width}: {fault}" for fault in page.evaluate(FAULTS)]
    return found


FAULTS = r"""
(() => {
  const faults = [];
  const root = document.documentElement;
  const shown = (it) => it.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && !it.closest(".unseen, .skip");
  const words = (it) => it.textContent.replace(/\s+/g, " ").trim().slice(0, 60);
  const inside = (it) => it.closest(".scroll, pre, .sqltext, nav");
  const say = (kind, ...what) => faults.push(kind + ": " + what.join(" | "));

  if (root.scrollWidth > root.clientWidth) say("page wider than the window", root.scrollWidth, root.clientWidth);

  for (const svg of document.querySelectorAll("svg")) {
    if (!shown(svg)) continue;
    const frame = svg.getBoundingClientRect();
    const place = svg.closest("figure")?.id || svg.closest("section")?.id || "";
    const labels = [...svg.querySelectorAll("text")].filter((it) => it.textContent.trim())
      .map((it) => ({ it, box: it.getBoundingClientRect() })).filter(({ box }) => box.width > 0);
    for (const { it, box } of labels) {
      const sideways = box.left < frame.left - 1.5 || box.right > frame.right + 1.5;
      if (sideways || box.top < frame.top - 2 || box.bottom > frame.bottom + 3)
        say("label clipped", place, words(it));
    }
    for (let a = 0; a < labels.length; a++) {
      for (let b = a + 1; b < labels.length; b++) {
        const p = labels[a].box, q = labels[b].box;
        const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (wide > 1 && high > 0.3 * Math.min(p.height, q.height))
          say("labels collide", place, words(labels[a].it), words(labels[b].it));
      }
    }
  }

  for (const box of document.querySelectorAll(".scroll")) {
    if (!shown(box) || box.scrollWidth <= box.clientWidth + 1) continue;
    if (!getComputedStyle(box).backgroundImage.includes("gradient")) say("table scrolls without a sign", words(box));
  }
  for (const table of document.querySelectorAll("table")) {
    if (shown(table) && !table.closest(".scroll") && table.getBoundingClientRect().right > root.clientWidth)
      say("table cut", words(table));
  }
  for (const it of document.querySelectorAll("main *")) {
    if (it.closest("svg") || !shown(it)) continue;
    const style = getComputedStyle(it);
    if (["hidden", "clip"].includes(style.overflowX) && it.scrollWidth > it.clientWidth + 1) say("text cut", words(it));
    const box = it.getBoundingClientRect();
    if (!inside(it) && box.width && box.right > root.clientWidth + 1) say("off the screen", it.tagName, words(it));
  }

  const unit = "%|ns|µs|ms|s|min|h|B|KiB|MiB|GiB|TiB|kB|MB|GB|\\/s";
  const amount = new RegExp(
    `(?<![\\w.,)\\/-])[+\\-−×]?\\d[\\d\\u2009\\u202f.,]*[ \\u00a0\\u2009\\u202f]?(?:${unit})?(?![\\w])`, "g");
  const date = /\b\d{4}-\d\d-\d\d\b/g;
  const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node; (node = walk.nextNode()); ) {
    const owner = node.parentElement;
    if (!owner || owner.closest("svg, pre, code, script, .sqltext") || !shown(owner)) continue;
    for (const found of node.data.matchAll(amount)) {
      if (found[0].trim().length < 2) continue;
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].trimEnd().length);
      const tops = new Set([...range.getClientRects()].filter((r) => r.width > 0).map((r) => Math.round(r.top / 4)));
      if (tops.size > 1) say("number torn", found[0], words(owner));
    }
    for (const found of node.data.matchAll(date)) {
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const tops = new Set([...range.getClientRects()].filter((r) => r.width > 0).map((r) => Math.round(r.top / 4)));
      if (tops.size > 1) say("date torn", found[0], words(owner));
    }
  }

  const cells = document.querySelectorAll("td, th");
  for (const cell of cells) {
    if (!shown(cell)) continue;
    const it = cell.querySelector("small, code, abbr, span:not(.whole)") ? null : cell;
    const pieces = it ? [...it.childNodes].filter((node) => !["WBR", "SPAN"].includes(node.nodeName)) : [];
    if (pieces.some((node) => node.nodeType !== 3)) continue;
    const text = it ? it.textContent.trim() : "";
    for (const node of pieces) for (const found of node.data.matchAll(/[\w.]+/g)) {
      if (found[0].length > 18) continue;
      const at = found.index;
      range.setStart(node, at);
      range.setEnd(node, at + found[0].length);
      const tops = new Set([...range.getClientRects()].filter((r) => r.width > 0).map((r) => Math.round(r.top / 4)));
      if (tops.size > 1) say("word torn", found[0], text.slice(0, 50));
    }
  }
  return [...new Set(faults)];
})()
"""
"""JavaScript that returns one sentence per layout fault; an empty list if there is none."""

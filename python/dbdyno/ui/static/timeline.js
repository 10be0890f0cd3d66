// The chart of active sessions: choose a stretch by drag or keyboard, zoom by wheel or keys. All state is in the address.
import { swap } from "./swap.js";

const MOVED = 4;        // pixels from which a press is a drag
const STEP = 1 / 60;    // of the window, by an arrow key
const CLOSER = 0.6;     // of the window, by a step of the wheel

// A shade is as high as the plot, and leaves the legend and the axis readable.
function upright(shade, shown) {
  const height = shown.getBoundingClientRect().height;
  shade.style.top = `${shown.offsetTop + height * Number(shown.dataset.top)}px`;
  shade.style.height = `${height * Number(shown.dataset.height)}px`;
}

export function timeline(root) {
  const plot = root.querySelector(".plot");
  if (!plot) return;
  const shades = plot.querySelectorAll(".shade");
  const span = { low: Number(root.dataset.low), high: Number(root.dataset.high) };
  let chosen = (root.dataset.stretch || "").split(" ").filter(Boolean).map(Number);

  const picture = () => [...plot.querySelectorAll("[data-left]")].find((one) => one.offsetParent !== null);
  const frame = () => {
    const shown = picture();
    const box = shown.getBoundingClientRect(), outer = plot.getBoundingClientRect();
    const left = box.left - outer.left + box.width * Number(shown.dataset.left);
    return { left, width: box.width * Number(shown.dataset.width), from: Number(shown.dataset.from), to: Number(shown.dataset.to), outer };
  };
  const timeAt = (x) => {
    const { left, width, from, to, outer } = frame();
    return from + Math.min(Math.max((x - outer.left - left) / width, 0), 1) * (to - from);
  };
  const draw = (shade, ends) => {
    const { left, width, from, to } = frame();
    shade.hidden = !ends.length;
    if (!ends.length) return;
    const place = (at) => left + Math.min(Math.max((at - from) / (to - from), 0), 1) * width;
    shade.style.left = `${place(ends[0])}px`;
    shade.style.width = `${Math.max(place(ends[1]) - place(ends[0]), 2)}px`;
    upright(shade, picture());
  };
  const redraw = () => draw(shades[0], chosen);
  redraw();
  addEventListener("resize", redraw);

  let begun = null;
  plot.addEventListener("pointerdown", (event) => {
    if (event.button || event.pointerType === "touch" && !event.isPrimary) return;
    begun = { x: event.clientX, other: event.shiftKey };
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    if (!begun || Math.abs(event.clientX - begun.x) < MOVED) return;
    draw(shades[begun.other ? 1 : 0], ordered(timeAt(begun.x), timeAt(event.clientX)));
  });
  plot.addEventListener("pointerup", (event) => {
    const from = begun;
    begun = null;
    if (!from || Math.abs(event.clientX - from.x) < MOVED) return;
    const ends = ordered(timeAt(from.x), timeAt(event.clientX));
    if (from.other && chosen.length) open("/periods", { stretch: text(chosen), against: text(ends) });
    else choose(ends);
  });
  plot.addEventListener("pointercancel", () => { begun = null; redraw(); });

  let turned = 0;
  plot.addEventListener("wheel", (event) => {
    if (event.ctrlKey) return;
    event.preventDefault();
    clearTimeout(turned);
    const at = timeAt(event.clientX), out = event.deltaY > 0;
    turned = setTimeout(() => zoom(out ? 1 / CLOSER : CLOSER, at), 120);
  }, { passive: false });

  let waiting = 0;
  plot.addEventListener("keydown", (event) => {
    const step = (span.high - span.low) * STEP, ends = chosen.length ? chosen : middle(span, step * 3);
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (way && event.shiftKey) chosen = [ends[0], Math.max(ends[1] + way * step, ends[0] + step)];
    else if (way) chosen = ends.map((one) => one + way * step);
    else if (event.key === "+" || event.key === "=") return zoom(CLOSER, (ends[0] + ends[1]) / 2);
    else if (event.key === "-") return zoom(1 / CLOSER, (ends[0] + ends[1]) / 2);
    else if (event.key === "Enter") { clearTimeout(waiting); return choose(chosen); }
    else if (event.key === "Escape") { chosen = []; return choose(chosen); }
    else return;
    event.preventDefault();
    redraw();
    clearTimeout(waiting);
    waiting = setTimeout(() => choose(chosen), 600);
  });

  function zoom(factor, at) {
    const low = at - (at - span.low) * factor, high = at + (span.high - at) * factor;
    if (high - low < 2e6) return;
    open(location.pathname, { window: text([low, high]) }, ["stretch"]);
  }
  function choose(ends) {
    chosen = ends;
    redraw();
    const to = there(location.pathname, { stretch: ends.length ? text(ends) : "" });
    swap(to, { push: true });
  }
}

addEventListener("popstate", () => location.reload());
document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("a[data-swap]") : null;
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  swap(link.getAttribute("href"), { push: true });
});

const ordered = (one, other) => [Math.min(one, other), Math.max(one, other)];
const middle = (span, width) => [(span.low + span.high - width) / 2, (span.low + span.high + width) / 2];
const text = (ends) => ends.map((at) => new Date(Math.round(at / 1e6) * 1000).toISOString().slice(0, 19)).join("..");
function there(path, more, without = []) {
  const query = new URLSearchParams(location.search);
  without.forEach((name) => query.delete(name));
  for (const [name, value] of Object.entries(more)) value ? query.set(name, value) : query.delete(name);
  return `${path}?${query}`;
}
function open(path, more, without) { location.href = there(path, more, without); }

// The slider of the blocking trees: a hundredth of the window after the other.
const slider = document.querySelector("[data-replay]");
if (slider) {
  let waiting = 0;
  slider.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const root = document.querySelector("[data-timeline]");
      const low = Number(root.dataset.low), width = (Number(root.dataset.high) - low) / 100, at = low + width * Number(slider.value);
      const query = new URLSearchParams(location.search);
      const window = query.get("window") || text([low, low + 100 * width]);
      swap(there(location.pathname, { window, stretch: text([at, at + Math.max(width, 1e6)]) }), { push: true });
      const shade = root.querySelector(".shade"), shown = [...root.querySelectorAll("[data-left]")].find((one) => one.offsetParent);
      if (!shown) return;
      const box = shown.getBoundingClientRect();
      shade.hidden = false;
      shade.style.left = `${box.width * (Number(shown.dataset.left) + Number(shown.dataset.width) * Number(slider.value) / 100)}px`;
      shade.style.width = `${Math.max(box.width * Number(shown.dataset.width) / 100, 2)}px`;
      upright(shade, shown);
    }, 250);
  });
}

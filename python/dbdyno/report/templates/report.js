"use strict";
(() => {
  const tip = document.getElementById("tip");
  const show = (mark, x, y) => {
    tip.textContent = mark.getAttribute("data-tip");
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    tip.style.left = Math.max(6, Math.min(x - box.width / 2, wide - box.width - 6)) + "px";
    tip.style.top = (y - box.height - 14 < 6 ? y + 18 : y - box.height - 14) + "px";
  };
  const over = (event) => {
    const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    if (mark) show(mark, event.clientX, event.clientY);
    else tip.hidden = true;
  };
  document.addEventListener("pointermove", over, { passive: true });
  document.addEventListener("pointerdown", over, { passive: true });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true, capture: true });
  const folded = () => document.querySelectorAll("details:not([open])");
  let opened = [];
  addEventListener("beforeprint", () => { opened = [...folded()]; opened.forEach((it) => { it.open = true; }); });
  addEventListener("afterprint", () => { opened.forEach((it) => { it.open = false; }); opened = []; });
})();

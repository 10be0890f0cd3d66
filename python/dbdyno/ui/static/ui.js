"use strict";
import { console_ } from "./console.js";
import { follow } from "./live.js";
import { timeline } from "./timeline.js";
import { zones } from "./zone.js";

const charts = () => document.querySelectorAll("[data-timeline]").forEach(timeline);
// Parts that take longer than the page are read after it.
const rest = () => document.querySelectorAll("[data-later]").forEach(later);

follow();
charts();
rest();
document.querySelectorAll("[data-complete]").forEach(console_);
document.querySelectorAll("[data-zone]").forEach(zones);
document.addEventListener("swapped", (event) => {
  if (event.detail.chart) charts();
  rest();
});

async function later(place) {
  try {
    const answer = await fetch(place.dataset.later, { credentials: "same-origin" });
    if (answer.status === 403) throw new Error("the token is of another server");
    place.innerHTML = await answer.text();
  } catch {
    place.textContent = "This part could not be read; reload the page to try again.";
  }
  place.removeAttribute("aria-busy");
}

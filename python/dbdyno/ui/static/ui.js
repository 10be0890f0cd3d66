"use strict";
import { console_ } from "./console.js";
import { follow } from "./live.js";
import { timeline } from "./timeline.js";

follow();
for (const found of document.querySelectorAll("[data-timeline]")) timeline(found);

for (const found of document.querySelectorAll("[data-complete]")) console_(found);

// Fragments that take longer than the page are fetched after it.
for (const place of document.querySelectorAll("[data-later]")) later(place);

async function later(place) {
  try {
    const answer = await fetch(place.dataset.later, { credentials: "same-origin" });
    place.innerHTML = await answer.text();
  } catch {
    place.textContent = "This part could not be read; reload the page to try again.";
  }
  place.removeAttribute("aria-busy");
}
document.addEventListener("later", (event) => later(event.detail));

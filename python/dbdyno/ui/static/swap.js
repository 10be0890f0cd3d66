// Puts another state of a view into the open page, so that its chart stays where it is.
import { ENDED, news } from "./news.js";

const PARTS = ["#content", ".bar-row", ".tabs:not(.bar-row)", ".kept", ".links", ".foot"];
const WITH_CHART = ["#content", ".timeline", ".tabs:not(.bar-row)", ".kept", ".links", ".foot"];

export async function swap(to, { push = false, chart = false } = {}) {
  const content = document.getElementById("content");
  content.classList.add("loading");
  content.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(to, { credentials: "same-origin" });
    if (answer.status === 403) throw new Error("the token is of another server");
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const which of chart ? WITH_CHART : PARTS) put(document.querySelector(which), found.querySelector(which));
    document.title = found.title;
    if (push) history.pushState({}, "", to);
    document.dispatchEvent(new CustomEvent("swapped", { detail: { chart } }));
  } catch {
    news(ENDED);
  }
  const now = document.getElementById("content");
  now.classList.remove("loading");
  now.removeAttribute("aria-busy");
}

function put(old, now) {
  if (old && now) old.replaceWith(now);
  else if (old) old.remove();
  else if (now) document.getElementById("content").before(now);
}

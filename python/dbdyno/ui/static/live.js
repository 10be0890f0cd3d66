// Pages that follow: the server says what has changed, and the open page is brought up to date.
import { ENDED, news } from "./news.js";
import { swap } from "./swap.js";

export function follow() {
  const wanted = (document.body.dataset.follows || "").split(" ").filter(Boolean);
  if (!wanted.length || !window.EventSource) return;
  const source = new EventSource(`/events?seen=${document.body.dataset.seen}`);
  let pending = 0;
  source.addEventListener("change", (event) => {
    if (!wanted.some((one) => event.data.split(" ").includes(one)) || pending) return;
    pending = setTimeout(async () => { await refresh(); pending = 0; }, 300);
  });
  // Closed for good: another server is there, which has another token. While none is there, the browser tries again.
  source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) news(ENDED); });
  addEventListener("pagehide", () => source.close());
}

async function refresh() {
  const held = document.activeElement && document.activeElement.getAttribute("href");
  await swap(location.pathname + location.search, { chart: true });
  const again = held && [...document.querySelectorAll("a")].find((one) => one.getAttribute("href") === held);
  if (again) again.focus();
}

// Pages that follow: the server says what has changed, and the open page is brought up to date.
export function follow() {
  const wanted = (document.body.dataset.follows || "").split(" ").filter(Boolean);
  if (!wanted.length || !window.EventSource) return;
  const source = new EventSource("/events");
  let pending = 0;
  source.addEventListener("change", (event) => {
    if (!wanted.some((one) => event.data.split(" ").includes(one)) || pending) return;
    pending = setTimeout(async () => { await refresh(); pending = 0; }, 300);
  });
  addEventListener("pagehide", () => source.close());
}

async function refresh() {
  const place = document.getElementById("content");
  const query = new URLSearchParams(location.search);
  query.set("part", "1");
  try {
    const answer = await fetch(`${location.pathname}?${query}`, { credentials: "same-origin" });
    if (!answer.ok || !place) return;
    const focused = document.activeElement && document.activeElement.getAttribute("href");
    place.innerHTML = await answer.text();
    const again = focused && [...place.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused);
    if (again) again.focus();
    document.dispatchEvent(new CustomEvent("refreshed"));
  } catch { /* the next change tries again */ }
}

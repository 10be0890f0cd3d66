// The switch of time zones: UTC, the server's, or this browser's. The choice is a cookie, as the server draws the times.
const NAME = "dbdyno-zone";

export function zones(select) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (own && own !== "UTC") select.add(new Option(`this browser's (${own})`, own));
  const chosen = select.dataset.zone;
  if (chosen && ![...select.options].some((one) => one.value === chosen)) select.add(new Option(chosen, chosen));
  select.value = chosen;
  select.closest("label").hidden = false;
  select.addEventListener("change", () => {
    const age = select.value ? 31536000 : 0;
    document.cookie = `${NAME}=${select.value}; Path=/; SameSite=Lax; Max-Age=${age}`;
    location.reload();
  });
}

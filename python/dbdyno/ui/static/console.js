// The SQL console: Ctrl+Enter runs the query; names of tables and columns are offered for the word that is being typed.
const SHOWN = 8;

export function console_(area) {
  const words = [...new Set(area.dataset.complete.split(" ").filter(Boolean))].sort();
  const list = document.getElementById(area.getAttribute("aria-controls"));
  let fits = [], at = 0;

  const begun = () => {
    if (area.selectionStart !== area.selectionEnd) return "";
    const found = /[a-z_][a-z_0-9]*$/i.exec(area.value.slice(0, area.selectionStart));
    return found ? found[0] : "";
  };
  const close = () => show([]);
  const show = (found) => {
    fits = found;
    at = 0;
    list.hidden = !found.length;
    list.replaceChildren(...found.map((word, place) => {
      const one = document.createElement("li");
      one.id = `name-${place}`;
      one.setAttribute("role", "option");
      one.textContent = word;
      one.addEventListener("pointerdown", (event) => { event.preventDefault(); take(word); });
      return one;
    }));
    mark();
  };
  const mark = () => {
    [...list.children].forEach((one, place) => one.setAttribute("aria-selected", String(place === at)));
    if (fits.length) area.setAttribute("aria-activedescendant", `name-${at}`);
    else area.removeAttribute("aria-activedescendant");
  };
  const take = (word) => {
    area.setRangeText(word, area.selectionStart - begun().length, area.selectionStart, "end");
    close();
  };

  area.addEventListener("input", () => {
    const word = begun().toLowerCase();
    show(word.length < 2 ? [] : words.filter((one) => one.toLowerCase().startsWith(word) && one.toLowerCase() !== word).slice(0, SHOWN));
  });
  area.addEventListener("blur", close);
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return area.form.requestSubmit();
    if (!fits.length) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") at = (at + (event.key === "ArrowDown" ? 1 : fits.length - 1)) % fits.length;
    else if (event.key === "Tab" && !event.shiftKey) take(fits[at]);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    mark();
  });
}

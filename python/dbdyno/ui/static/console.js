// The SQL console: Ctrl+Enter runs the query, Tab completes the name of a table or column.
export function console_(area) {
  const words = [...new Set(area.dataset.complete.split(" ").filter(Boolean))].sort();
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) area.form.requestSubmit();
    if (event.key !== "Tab" || event.shiftKey || area.selectionStart !== area.selectionEnd) return;
    const before = area.value.slice(0, area.selectionStart), begun = /[a-z_0-9]+$/i.exec(before);
    const fits = begun ? words.filter((one) => one.startsWith(begun[0].toLowerCase()) && one !== begun[0]) : [];
    if (!fits.length) return;
    event.preventDefault();
    let common = fits[0];
    while (!fits.every((one) => one.startsWith(common))) common = common.slice(0, -1);
    area.setRangeText(common.slice(begun[0].length), area.selectionStart, area.selectionStart, "end");
  });
}

// A line at the foot of the window about what has become of the server of the pages.
export function news(words) {
  let line = document.querySelector(".news");
  if (!line) {
    line = document.createElement("p");
    line.className = "news";
    line.setAttribute("role", "status");
    document.body.append(line);
  }
  line.textContent = words;
}

export const ENDED = "dbdyno ui was stopped or restarted. Open the address that it printed last.";

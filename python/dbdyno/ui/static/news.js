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

export const ENDED = "The server of this page has ended or began anew. Open the address that dbdyno ui printed last.";

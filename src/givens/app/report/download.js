// What a reader takes along: lists to the clipboard, tables as CSV, figures as SVG.
const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell);
const csv = (header, lines) => [header, ...lines].map((line) => line.map((cell) => quoted(String(cell ?? ""))).join(",")).join("\n") + "\n";
const fileName = (...words) => words.join("_").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "_").replace(/^_|_$/g, "").slice(0, 80);

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type: type + ";charset=utf-8" }));
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

async function copied(button, text) {
  const before = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
  catch {
    // A page opened from a disk may not reach the clipboard; a selection can still be copied the old way.
    const area = element("textarea", { class: "hidden", readonly: "" });
    area.value = text;
    document.body.append(area);
    area.select();
    button.textContent = document.execCommand("copy") ? "Copied" : "The browser refuses; download instead";
    area.remove();
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

// A line of small buttons: [[text, title, function of the button], ...].
function tools(buttons) {
  return element("p", { class: "tools" }, ...buttons.map(([text, title, act]) => {
    const button = element("button", { type: "button", class: "copy", text, title });
    button.addEventListener("click", () => act(button));
    return button;
  }));
}
const csvTool = (name, header, lines) => ["Download CSV", "The table as a CSV file", () => save(fileName(name) + ".csv", "text/csv", csv(header, lines()))];
const svgTool = (name, figure) => ["Download SVG", "The figure as an SVG file", () => save(fileName(name()) + ".svg", "image/svg+xml", standalone(figure()))];

// A drawing with its colours and letters written into its elements, so that it looks the same without this page's style sheet.
const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-linejoin", "paint-order", "font-size", "font-weight"];
function standalone(svg) {
  const copy = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.textContent);
    if (node.classList.contains("ring")) return document.createTextNode("");
    const twin = document.createElementNS(node.namespaceURI, node.localName);
    for (const { name, value } of node.attributes) if (!["class", "style", "tabindex", "role"].includes(name)) twin.setAttribute(name, value);
    const style = getComputedStyle(node);
    for (const key of KEPT) twin.setAttribute(key, style.getPropertyValue(key));
    twin.append(...[...node.childNodes].map(copy));
    return twin;
  };
  const twin = copy(svg), [, , width, height] = svg.getAttribute("viewBox").split(" ");
  twin.setAttribute("width", width);
  twin.setAttribute("height", height);
  twin.setAttribute("font-family", "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif");
  const paper = element("rect", { width, height, fill: getComputedStyle(root).getPropertyValue("--card").trim() });
  twin.prepend(paper);
  return new XMLSerializer().serializeToString(twin);
}

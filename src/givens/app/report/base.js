// What the sections share: elements built from text (never from markup), the tooltip, the theme, numbers in words.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (selector, within = document) => within.querySelector(selector);

// Names come from the data. They reach the page through textContent alone, so a name that looks like markup is text.
function element(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "line", "path", "circle", "text", "rect"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

const tenTo = (power) => "10" + [...String(power)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    const [mantissa, power] = size.toExponential(2).split("e");
    return (value < 0 ? "−" : "") + mantissa + " · " + tenTo(Number(power));
  }
  return (value < 0 ? "−" : "") + size.toLocaleString("en", { maximumSignificantDigits: Math.max(digits, Math.ceil(Math.log10(size + 1))) });
}
// Weights keep three decimals, so that a column of them can be compared; where all are tiny or huge (signals in volts), in one power of ten.
let weightPower = 0;
function chooseWeightPower(weights) {
  let largest = 0;
  for (const list of weights) for (const w of list) largest = Math.max(largest, Math.abs(w));
  weightPower = largest === 0 || (largest >= 0.01 && largest < 1e6) ? 0 : 3 * Math.floor(Math.log10(largest) / 3);
}
const decimals = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value / 10 ** weightPower).toFixed(3);
const signed = (value) => decimals(value) + (weightPower && value ? " · " + tenTo(weightPower) : "");
const inUnits = () => (weightPower ? `, in units of ${tenTo(weightPower)}` : "");
const percent = (value) => (value * 100).toFixed(value < 0.0995 ? 2 : 1) + " %";

const tip = $("#tip");
function showTip(x, y, title, text) {
  tip.replaceChildren(element("strong", { text: title }), document.createTextNode(text));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 14 + box.width > innerWidth - 8 ? x - 14 - box.width : x + 14;
  tip.style.left = Math.max(8, Math.min(left, innerWidth - box.width - 8)) + "px";
  tip.style.top = Math.max(8, Math.min(y + 14, innerHeight - box.height - 8)) + "px";
}
const hideTip = () => { tip.hidden = true; };
addEventListener("scroll", hideTip, { passive: true });
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

// The theme follows the system until the reader chooses; where storage is closed to a local page, the choice lasts for the visit.
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
let choice = null;
try { choice = localStorage.getItem("givens-theme"); } catch { /* a page opened from a disk may have no storage */ }
function paint() {
  const theme = choice || (system.matches ? "dark" : "light");
  root.dataset.theme = theme;
  $("#theme").textContent = theme === "dark" ? "☀ Light" : "☾ Dark";
}
$("#theme").addEventListener("click", () => {
  choice = root.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("givens-theme", choice); } catch { /* as above */ }
  paint();
});
system.addEventListener("change", paint);
paint();
// Paper is white: print in light, and come back afterwards.
const printing = [];
const onPrint = (make) => printing.push(make);
let opened = [];
function toPaper() {
  root.dataset.theme = "light";
  printing.forEach((make) => make());
  if (!opened.length) opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((details) => { details.open = true; });
}
function toScreen() {
  opened.forEach((details) => { details.open = false; });
  opened = [];
  paint();
}
addEventListener("beforeprint", toPaper);
addEventListener("afterprint", toScreen);
const alphabet = new Intl.Collator("en", { numeric: true });

function rows(table, header, lines) {
  table.replaceChildren(
    ...(header ? [element("thead", {}, element("tr", {}, ...header.map((text) => element("th", { scope: "col", text }))))] : []),
    element("tbody", {}, ...lines.map((line) => element("tr", {},
      ...line.map((text, k) => element(k ? "td" : "th", k ? { text, class: k > 1 ? "soft" : null } : { text, scope: "row" }))))));
}

function copyButton(text) {
  const button = element("button", { type: "button", class: "copy", text: "Copy" });
  button.addEventListener("click", () => copied(button, text));
  return button;
}

// Axes and lines for the small charts and the scatter, drawn as SVG.
function ticks(low, high, wanted = 5) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find((m) => raw <= m * power * 1.0001);
  const marks = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-9; t += step) marks.push(Math.abs(t) < step * 1e-9 ? 0 : t);
  return marks;
}
const superscript = (n) => String(n).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻");

// A scale takes a value to the interval [from, to]; `log` in powers of ten.
function scale(values, from, to, { log = false, margin = 0.04, zero = false, whole = false } = {}) {
  const map = log ? (v) => Math.log10(v) : (v) => v;
  const finite = values.filter((v) => v !== null && Number.isFinite(map(v))).map(map);
  let low = Math.min(...finite), high = Math.max(...finite);
  if (zero) { low = Math.min(low, 0); high = Math.max(high, 0); }
  if (!(high > low)) { low -= 0.5; high += 0.5; }
  const extra = (high - low) * margin;
  if (!zero || low < 0) low -= extra;
  high += extra;
  const place = (v) => from + ((map(v) - low) / (high - low)) * (to - from);
  let marks = ticks(low, high, Math.max(2, Math.abs(to - from) / 75));
  if (log) {
    const powers = marks.filter((t) => Number.isInteger(t)).map((t) => 10 ** t);
    marks = powers.length > 2 ? powers : [];
    for (let k = Math.floor(low); !powers[2] && k <= high; k += 1) {
      for (const m of [1, 2, 5]) if (Math.log10(m) + k >= low && Math.log10(m) + k <= high) marks.push(m * 10 ** k);
    }
  } else if (whole) marks = marks.filter((t) => Math.abs(t - Math.round(t)) < 1e-9);
  // As few digits as tell the marks apart.
  const plain = (t, digits) => Math.abs(t) >= 1e5 || (t !== 0 && Math.abs(t) < 1e-4) ? t.toExponential(digits - 5) : t.toLocaleString("en", { maximumFractionDigits: digits });
  let digits = 6;
  while (digits < 17 && new Set(marks.map((t) => plain(t, digits))).size < marks.length) digits += 1;
  const write = (t) => {
    if (!log) return plain(t, digits);
    const e = Math.log10(t);
    return Math.abs(e - Math.round(e)) < 1e-9 ? (e >= 0 && e < 5 ? Math.round(t).toLocaleString("en") : "10" + superscript(Math.round(e))) : number(t, 2);
  };
  return { place, marks, write };
}

function frame(place, { height, x, y, xTitle, yTitle, label }) {
  const width = Math.max(280, place.clientWidth || 520);
  const top = 26, bottom = height - 42, right = width - 12;
  const up = scale(y.values, bottom, top, y);
  const longest = Math.max(0, ...up.marks.map((t) => (y.write || up.write)(t).length));
  const left = Math.max(62, 14 + 8.2 * longest);
  const across = scale(x.values, left, right, x);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, tabindex: "0" });
  for (const t of up.marks) {
    const h = up.place(t);
    svg.append(element("line", { class: t === 0 && y.axis ? "zero" : "grid", x1: left, x2: right, y1: h, y2: h }),
      element("text", { x: left - 8, y: h + 4, "text-anchor": "end", text: (y.write || up.write)(t) }));
  }
  for (const t of across.marks) {
    const w = across.place(t);
    if (x.axis) svg.append(element("line", { class: t === 0 ? "zero" : "grid", x1: w, x2: w, y1: top, y2: bottom }));
    svg.append(element("text", { x: w, y: bottom + 18, "text-anchor": "middle", text: (x.write || across.write)(t) }));
  }
  svg.append(element("text", { class: "title", x: (left + right) / 2, y: height - 4, "text-anchor": "middle", text: xTitle }),
    element("text", { class: "title", x: 4, y: 13, text: yTitle }));
  place.replaceChildren(svg);
  return { svg, across: across.place, up: up.place, width, height };
}

// Hover and arrow keys over points: [{x, y, title, text}] in the drawing's own units.
function explore(plot, points, visible = () => true, reach = 28) {
  const ring = element("circle", { class: "ring", r: 8, visibility: "hidden" });
  plot.svg.append(ring);
  let at = -1;
  const box = () => plot.svg.getBoundingClientRect();
  function show(k) {
    at = k;
    const { x, y, title, text } = points[k], b = box(), ratio = b.width / plot.width;
    ring.setAttribute("cx", x); ring.setAttribute("cy", y); ring.setAttribute("visibility", "visible");
    showTip(b.left + x * ratio, b.top + y * ratio, title, text);
  }
  function clear() { at = -1; ring.setAttribute("visibility", "hidden"); hideTip(); }
  const nearest = (event) => {
    const b = box(), ratio = plot.width / b.width;
    const x = (event.clientX - b.left) * ratio, y = (event.clientY - b.top) * ratio;
    let best = -1, least = reach * reach;
    points.forEach((p, k) => {
      const d = (p.x - x) ** 2 + (p.y - y) ** 2;
      if (d < least && visible(k)) { least = d; best = k; }
    });
    if (best >= 0) show(best); else clear();
  };
  plot.svg.addEventListener("pointermove", nearest);
  plot.svg.addEventListener("pointerdown", nearest);
  plot.svg.addEventListener("pointerleave", clear);
  plot.svg.addEventListener("blur", clear);
  const sorted = points.map((_, k) => k).sort((a, b) => points[a].x - points[b].x);
  plot.svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const shown = sorted.filter(visible);
    const now = shown.indexOf(at);
    const to = now < 0 ? (step > 0 ? 0 : shown.length - 1) : Math.min(shown.length - 1, Math.max(0, now + step));
    if (shown.length) show(shown[to]);
  });
}

const curve = (points) => "M" + points.map(({ x, y }) => `${x.toFixed(2)},${y.toFixed(2)}`).join("L");

function drawLine(section, view) {
  section.hidden = false;
  $(".lead", section).textContent = view.lead;
  const place = $(".plot", section), drawn = view.points.length > 0;
  place.hidden = !drawn;
  $("details", section).open = !drawn;
  const share = (t) => Math.round(t * 1000) / 10 + " %";
  const draw = () => {
    const plot = frame(place, {
      height: 300, xTitle: view.xTitle, yTitle: view.yTitle, label: view.lead,
      x: { values: view.points.map((p) => p.x), log: view.xLog, whole: true },
      y: { values: view.points.map((p) => p.y), log: view.yLog, zero: view.zero, write: view.percent ? share : null },
    });
    const points = view.points.map((p) => ({ ...p, x: plot.across(p.x), y: plot.up(p.y) }));
    plot.svg.append(element("path", { class: "line", d: curve(points.filter((p) => !p.chosen)) }));
    if (points.length <= 60) plot.svg.append(...points.filter((p) => !p.chosen).map((p) => element("circle", { class: "dot", cx: p.x, cy: p.y, r: 4 })));
    plot.svg.append(...points.filter((p) => p.chosen).map((p) => element("circle", { class: "chosen", cx: p.x, cy: p.y, r: 6.5 })));
    explore(plot, points, () => true, 60);
  };
  if (drawn) {
    draw();
    new ResizeObserver(draw).observe(place);
  }
  rows($("table", section), view.header, view.table);
  const numbers = () => (view.percent ? view.points.filter((p) => !p.chosen).map((p) => [p.x, p.y]) : view.table.map((line) => line.map((cell) => (cell === "–" ? "" : cell))));
  $(".card", section).append(tools([...(drawn ? [svgTool(() => section.id, () => $("svg", place))] : []), csvTool(section.id, view.header, numbers)]));
}

// The samples as a scatter, coloured (and shaped) by label.
const SHAPES = [
  (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
  (x, y, r) => `M${x},${y - 1.25 * r}L${x + 1.15 * r},${y + 0.8 * r}L${x - 1.15 * r},${y + 0.8 * r}Z`,
  (x, y, r) => `M${x - 0.9 * r},${y - 0.9 * r}h${1.8 * r}v${1.8 * r}h${-1.8 * r}Z`,
  (x, y, r) => `M${x},${y - 1.3 * r}L${x + 1.3 * r},${y}L${x},${y + 1.3 * r}L${x - 1.3 * r},${y}Z`,
  (x, y, r) => `M${x},${y + 1.25 * r}L${x + 1.15 * r},${y - 0.8 * r}L${x - 1.15 * r},${y - 0.8 * r}Z`,
];
const COLOURS = 11;

// Blue through grey to orange: even in lightness, and distinct to readers who do not see red or green.
function heat(t) {
  const stops = [[33, 102, 172], [103, 169, 207], [150, 150, 150], [239, 160, 90], [178, 84, 24]];
  const at = Math.min(3.9999, Math.max(0, t * 4)), k = Math.floor(at), f = at - k;
  return `rgb(${stops[k].map((c, j) => Math.round(c + (stops[k + 1][j] - c) * f)).join(" ")})`;
}

function drawScores(view) {
  const section = $("#scores");
  section.hidden = false;
  $(".lead", section).textContent = view.lead;
  const { axes, values, names, labels } = view;
  const counts = new Map();
  (labels || []).forEach((label) => counts.set(label, (counts.get(label) || 0) + 1));
  const amounts = labels && labels.map(Number);
  const continuous = labels && counts.size > COLOURS && labels.every((label, k) => label.trim() !== "" && Number.isFinite(amounts[k]));
  let groups = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || a.localeCompare(b, "en"));
  const rest = !continuous && groups.length > COLOURS ? groups.splice(COLOURS - 1) : [];
  if (groups.length <= COLOURS) groups.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const slot = new Map(groups.map((label, k) => [label, k]));
  rest.forEach((label) => slot.set(label, groups.length));
  const off = new Set();
  const place = $("#scatter");
  const low = continuous ? Math.min(...amounts) : 0, high = continuous ? Math.max(...amounts) : 1;

  function paintOf(k) {
    if (!labels) return ["var(--c0)", 0];
    if (continuous) return [heat((amounts[k] - low) / (high - low || 1)), 0];
    const s = slot.get(labels[k]);
    return s < groups.length ? [`var(--c${s})`, s % SHAPES.length] : ["var(--other)", 0];
  }
  const across = $("#across"), up = $("#up");
  axes.forEach((name, k) => { for (const menu of [across, up]) menu.append(element("option", { value: k, text: name })); });
  across.value = 0;
  up.value = Math.min(1, axes.length - 1);

  function draw() {
    const a = +across.value, b = +up.value;
    const plot = frame(place, {
      height: Math.max(320, Math.min(540, Math.round((place.clientWidth || 700) * 0.62))),
      xTitle: axes[a], yTitle: axes[b], label: `Scores of ${names.length} samples: ${axes[a]} across, ${axes[b]} up`,
      x: { values: values.map((v) => v[a]), axis: true }, y: { values: values.map((v) => v[b]), axis: true },
    });
    const r = values.length > 1500 ? 2.6 : values.length > 400 ? 3.6 : 5;
    const points = values.map((v, k) => ({
      x: plot.across(v[a]), y: plot.up(v[b]), title: names[k],
      text: (labels ? `${view.labelName}: ${labels[k]}\n` : "") + `${axes[a]}  ${number(v[a])}\n${axes[b]}  ${number(v[b])}`,
    }));
    const visible = (k) => !labels || continuous || !off.has(Math.min(slot.get(labels[k]), groups.length));
    const layer = element("g", { "fill-opacity": ".78", "stroke-width": ".8" });
    points.forEach((p, k) => {
      if (!visible(k)) return;
      const [colour, shape] = paintOf(k);
      const mark = element("path", { d: SHAPES[shape](p.x, p.y, r) });
      mark.style.fill = colour;
      mark.style.stroke = "var(--card)";
      layer.append(mark);
    });
    plot.svg.append(layer);
    for (const mark of view.marks || []) {
      plot.svg.append(element("text", { class: "mark", x: plot.across(mark.values[a]), y: plot.up(mark.values[b]), "text-anchor": "middle", dy: ".35em", text: mark.name }));
    }
    explore(plot, points, visible);
  }

  const legend = $("#legend");
  if (continuous) {
    const bar = element("span", { class: "scale" });
    bar.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(heat).join(", ")})`;
    legend.append(element("span", { class: "small", text: `${view.labelName}: ${number(low)}` }), bar, element("span", { class: "small", text: number(high) }));
  } else if (labels) {
    const shown = [...groups, ...(rest.length ? [`${rest.length} others`] : [])];
    legend.append(element("span", { class: "small", text: view.labelName + ":" }), ...shown.map((label, k) => {
      const swatch = element("path", { d: SHAPES[k < groups.length ? k % SHAPES.length : 0](6.5, 6.5, 5) });
      swatch.style.fill = k < groups.length ? `var(--c${k})` : "var(--other)";
      const amount = k < groups.length ? counts.get(label) : rest.reduce((sum, name) => sum + counts.get(name), 0);
      const button = element("button", { type: "button", "aria-pressed": "true", title: "Show or hide" },
        element("svg", { viewBox: "0 0 13 13", "aria-hidden": "true" }, swatch), `${label === "" ? "(none)" : label} (${amount.toLocaleString("en")})`);
      button.addEventListener("click", () => {
        off.has(k) ? off.delete(k) : off.add(k);
        button.setAttribute("aria-pressed", !off.has(k));
        draw();
      });
      return button;
    }));
  }
  across.addEventListener("change", draw);
  up.addEventListener("change", draw);
  draw();
  new ResizeObserver(draw).observe(place);
}

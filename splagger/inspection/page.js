"use strict";
// The page of `splagger inspect`. All numbers come from the JSON element; the state of the page is `step`.
const data = JSON.parse(document.getElementById("data").textContent);
const TYPES = { f4: Float32Array, i1: Int8Array, i2: Int16Array, i4: Int32Array, u2: Uint16Array, u4: Uint32Array };
const SVG = "http://www.w3.org/2000/svg";
const STEPS_RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const OUTCOME_COLORS = ["#cc79a7", "#009e73", "#7a5fd0", "#b8860b", "#d55e00", "#56b4e9"]; // as many as there are interventions

function decode(array) {
  const bytes = Uint8Array.from(atob(array.data), (c) => c.charCodeAt(0));
  const numbers = new TYPES[array.type](bytes.buffer);
  const width = array.shape.length > 1 ? array.shape[1] : 1;
  const at = (row, column = 0) => numbers[row * width + column] * array.scale;
  return { rows: array.shape[0], width, at };
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const minus = (text) => text.replace("-", "−");
const signed = (x, digits = 2) => minus(`${x > 0 ? "+" : ""}${+x.toFixed(digits)}`);
const short = (x, digits = 2) => minus(x.toFixed(digits));

// The agents with their arrays decoded. Agents of one page play the same task, perhaps with different lengths.
const agents = data.agents.map((agent) => {
  const arrays = Object.fromEntries(Object.entries(agent.arrays).map(([k, v]) => [k, decode(v)]));
  const returns = [];
  for (let t = 0, sum = 0; t < arrays.reward.rows; t++) returns.push((sum += arrays.reward.at(t)));
  const outcomes = agent.outcomes.map((outcome) => {
    const curve = decode(outcome.returns);
    return { ...outcome, curve: Array.from({ length: curve.rows }, (_, t) => curve.at(t)), distance: decode(outcome.distance) };
  });
  return { ...agent, arrays, returns, outcomes, tiles: decode(agent.tiles), steps: arrays.reward.rows };
});
const steps = Math.max(...agents.map((agent) => agent.steps));
let step = 0;
const updates = []; // functions of the step, called when it changes
const redraws = []; // functions that depend on the color scheme

// Colors.
function cssColor(name) {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}
const mix = (a, b, share) => a.map((x, i) => x + (b[i] - x) * share);
function ramp(share) {
  const place = Math.min(Math.max(share, 0), 1) * (STEPS_RAMP.length - 1);
  const low = Math.min(Math.floor(place), STEPS_RAMP.length - 2);
  return mix(STEPS_RAMP[low], STEPS_RAMP[low + 1], place - low);
}

// Pictures.
const sheets = data.pictures.sheets.map((source) => { const image = new Image(); image.src = source; return image; });
const loaded = Promise.all(sheets.map((image) => image.decode()));
function picture(agent) {
  const [width, height] = data.pictures.size, [w, h] = data.pictures.tile;
  const canvas = element("canvas", { class: "picture", width, height, role: "img", "aria-label": "the environment" });
  const context = canvas.getContext("2d"), columns = Math.ceil(width / w);
  const draw = (t) => {
    for (let i = 0; i < agent.tiles.width; i++) {
      const id = agent.tiles.at(Math.min(t, agent.steps - 1), i), place = id % data.pictures.per_sheet;
      const column = place % data.pictures.columns, row = Math.floor(place / data.pictures.columns);
      const sheet = sheets[Math.floor(id / data.pictures.per_sheet)];
      context.drawImage(sheet, column * w, row * h, w, h, (i % columns) * w, Math.floor(i / columns) * h, w, h);
    }
  };
  updates.push((t) => loaded.then(() => { if (t === step) draw(t); }));
  return canvas;
}

// The decision at one step: numbers and the distribution over actions.
function facts(agent) {
  const names = ["reward", "return", "value", "action"];
  const cells = names.map(() => element("dd"));
  updates.push((t) => {
    const now = Math.min(t, agent.steps - 1), reward = agent.arrays.reward.at(now);
    cells[0].textContent = signed(reward);
    cells[0].className = reward > 0 ? "good" : reward < 0 ? "bad" : "";
    cells[1].textContent = signed(agent.returns[now]);
    cells[2].textContent = short(agent.arrays.value.at(now));
    cells[3].textContent = chosen(agent, now);
  });
  return element("dl", { class: "facts" }, ...names.map((name, i) => element("div", {}, element("dt", {}, name), cells[i])));
}

function chosen(agent, t) {
  if (agent.arrays.spread || agent.sizes.length > 4) return "–";
  if (agent.sizes.length) return agent.sizes.map((_, i) => agent.arrays.action.at(t, i)).join(", ");
  return agent.actions[mode(agent, t)];
}

function mode(agent, t) {
  const { probabilities } = agent.arrays;
  let best = 0;
  for (let a = 1; a < probabilities.width; a++) if (probabilities.at(t, a) > probabilities.at(t, best)) best = a;
  return best;
}

function bars(agent) {
  const { probabilities, spread, action } = agent.arrays, box = element("div", { class: "bars" });
  let most = 1;
  if (spread) for (let t = 0; t < agent.steps; t++) for (let a = 0; a < spread.width; a++)
    most = Math.max(most, Math.abs(probabilities.at(t, a)) + spread.at(t, a));
  for (let a = 0; a < probabilities.width; a++) {
    const name = element("span", {}, agent.actions[a]), number = element("b"), fill = element("i");
    box.append(name, element("div", { class: spread ? "track middle" : "track" }, fill), number);
    updates.push((t) => {
      const now = Math.min(t, agent.steps - 1), x = probabilities.at(now, a);
      if (spread) {
        const deviation = spread.at(now, a);
        fill.style.left = `${50 + (50 * (x - deviation)) / most}%`;
        fill.style.width = `${(100 * deviation) / most}%`;
        fill.style.background = agent.color;
      } else {
        const chosen = action.at(now) === a;
        fill.style.width = `${100 * x}%`;
        fill.style.background = chosen ? agent.color : "";
        name.className = number.className = chosen ? "chosen" : "";
      }
      number.textContent = short(x, 3);
    });
  }
  return box;
}

// An action of several numbers: one bar per number, divided among its values; the one on the right belongs to the chosen value.
function dividedBars(agent) {
  const { probabilities, action } = agent.arrays, box = element("div", { class: "bars" });
  let first = 0;
  agent.sizes.forEach((size, i) => {
    const start = first, number = element("b", { class: "chosen" });
    const parts = count(size).map((value) => element("i", {}, `${value}`));
    first += size;
    box.append(element("span", {}, agent.actions[i]), element("div", { class: "track divided" }, ...parts), number);
    updates.push((t) => {
      const now = Math.min(t, agent.steps - 1), taken = action.at(now, i);
      let left = 0;
      parts.forEach((part, value) => {
        const x = probabilities.at(now, start + value);
        part.style.left = `${100 * left}%`;
        part.style.width = `${100 * x}%`;
        part.style.background = value === taken ? agent.color : "";
        part.className = value === taken ? "taken" : "";
        part.title = `${agent.actions[i]} = ${value}: ${short(x, 3)}`;
        left += x;
      });
      number.textContent = short(probabilities.at(now, start + taken), 3);
    });
  });
  return box;
}

// Strips: plots over all steps with a common cursor, on which a click goes to a step.
function plot(...contents) {
  const cursor = element("div", { class: "cursor" }), box = element("div", { class: "plot" }, ...contents, cursor);
  updates.push((t) => { cursor.style.left = `${(100 * (t + 0.5)) / steps}%`; });
  const place = (event) => {
    const bounds = box.getBoundingClientRect();
    return Math.min(steps - 1, Math.max(0, Math.floor(((event.clientX - bounds.left) / bounds.width) * steps)));
  };
  const seek = (event) => { if (event.buttons) go(place(event)); };
  box.addEventListener("pointerdown", seek);
  box.addEventListener("pointermove", seek);
  box.place = place;
  return box;
}

function strip(title, notes, box, ...more) {
  return element("section", { class: "strip" }, element("header", {}, element("h3", {}, title), ...notes), box, ...more);
}

const key = (color, text) => {
  const line = element("i");
  line.style.background = color;
  return element("span", { class: "key soft" }, line, text);
};

function curves(agent) {
  const values = Array.from({ length: agent.steps }, (_, t) => agent.arrays.value.at(t));
  const lines = [{ numbers: agent.returns, color: agent.color, kind: "" }, { numbers: values, color: "var(--soft)", kind: "thin" }];
  const keys = [key(agent.color, "cumulative return"), key("var(--soft)", "value")];
  agent.outcomes.forEach((outcome, i) => lines.push({ numbers: outcome.curve, color: OUTCOME_COLORS[i], kind: "thin" }));
  const all = lines.flatMap((line) => line.numbers).concat(0), low = Math.min(...all), high = Math.max(...all, low + 1e-6);
  const drawing = shape("svg", { viewBox: `0 0 ${steps} 100`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const y = (x) => 98 - (96 * (x - low)) / (high - low);
  drawing.append(shape("path", { d: `M0 ${y(0)}H${steps}`, stroke: "var(--line)", class: "thin" }));
  for (const { numbers, color, kind } of lines.reverse()) {
    const points = numbers.slice(0, steps).map((x, t) => `${t + 0.5} ${y(x).toFixed(2)}`);
    drawing.append(shape("path", { d: `M${points.join("L")}`, stroke: color, class: kind }));
  }
  keys.push(element("span", { class: "soft" }, `from ${short(low, 1)} to ${short(high, 1)}`));
  return strip("Return and value", keys, plot(drawing), marks(agent));
}

function marks(agent) {
  const place = (t, kind, title) => {
    const mark = element("i", { class: kind, title });
    mark.style.left = `${(100 * (t + 0.5)) / steps}%`;
    return mark;
  };
  const ends = agent.episodeEnds.map((t) => place(t, "end", `an episode ends at step ${t}`));
  return element("div", { class: "marks" }, ...ends, ...agent.signals.map((t) => place(t, "signal", `signal at step ${t}`)));
}

function heatMap(agent, rows, paint, describe, height) {
  const canvas = element("canvas", { width: steps, height: rows.length, role: "img" });
  canvas.style.height = `${Math.min(Math.max(rows.length * height, 24), 200)}px`;
  const context = canvas.getContext("2d"), note = element("span", { class: "soft" });
  const draw = () => {
    const image = context.createImageData(steps, rows.length), color = paint();
    for (let t = 0; t < agent.steps; t++) rows.forEach((neuron, i) => {
      const found = color(t, neuron);
      if (found) image.data.set([...found.map(Math.round), 255], 4 * (i * steps + t));
    });
    context.putImageData(image, 0, 0);
  };
  redraws.push(draw);
  const box = plot(canvas);
  box.addEventListener("pointermove", (event) => {
    const bounds = canvas.getBoundingClientRect();
    const i = Math.floor(((event.clientY - bounds.top) / bounds.height) * rows.length);
    const t = Math.min(box.place(event), agent.steps - 1);
    if (i >= 0 && i < rows.length) note.textContent = describe(t, rows[i]);
  });
  return { box, note, draw };
}

const count = (n, from = 0) => Array.from({ length: n }, (_, i) => from + i);
function diverging(array, first = 0) {
  let most = 1e-9;
  for (let t = 0; t < array.rows; t++) for (let i = first; i < array.width; i++) most = Math.max(most, Math.abs(array.at(t, i)));
  return () => {
    const [zero, plus, less] = ["--zero", "--plus", "--minus"].map(cssColor);
    return (t, i) => { const x = array.at(t, i) / most; return mix(zero, x < 0 ? less : plus, Math.abs(x) ** 0.8); };
  };
}

const rampKey = (left, colors, right) => {
  const bar = element("span", { class: "ramp" });
  bar.style.background = `linear-gradient(to right, ${colors})`;
  return element("span", { class: "key soft" }, left, bar, right);
};
const valueKey = () => rampKey("−", "var(--minus), var(--zero), var(--plus)", "+");
const stepKey = () => rampKey("first step", STEPS_RAMP.map((c) => `rgb(${c})`), "last step");

function neuronStrips(agent) {
  const { neurons, setBy, variance } = agent.arrays, made = [], aggregated = neurons.width - agent.skip;
  if (variance) return made; // the belief is what was aggregated
  if (aggregated) made.push(...(setBy ? maxima(agent) : [values(agent, "Aggregated neurons", count(aggregated, agent.skip))]));
  if (agent.skip) made.push(values(agent, aggregated ? "Bypassing neurons" : "Neurons", count(agent.skip)));
  return made;
}

function values(agent, title, rows, array = agent.arrays.neurons, first = rows[0]) {
  const height = rows.length > 24 ? 2 : 6;
  const map = heatMap(agent, rows, diverging(array, first), (t, i) => `step ${t}, ${i - first}: ${short(array.at(t, i), 3)}`, height);
  return strip(`${title} (${rows.length})`, [valueKey(), map.note], map.box);
}

// Maxima: rows are sorted by the step that set their last value, so that neurons with one origin are together.
function maxima(agent) {
  const { neurons, setBy } = agent.arrays, last = agent.steps - 1;
  const rows = count(setBy.width).sort((a, b) => setBy.at(last, a) - setBy.at(last, b) || a - b);
  let origin = true;
  const byValue = diverging(neurons, agent.skip);
  const byStep = () => (t, i) => (setBy.at(t, i) < 0 ? null : ramp(setBy.at(t, i) / Math.max(last, 1)));
  const paint = () => { if (origin) return byStep(); const color = byValue(); return (t, i) => color(t, agent.skip + i); };
  const describe = (t, i) => {
    const set = setBy.at(t, i), value = short(neurons.at(t, agent.skip + i), 3);
    return set < 0 ? `step ${t}, neuron ${i}: nothing above the floor yet` : `step ${t}, neuron ${i}: ${value}, set by step ${set}`;
  };
  const map = heatMap(agent, rows, paint, describe, rows.length > 24 ? 3 : 6);
  const legend = element("span", {}, stepKey());
  const toggle = element("button", { class: "toggle", type: "button", onclick: () => {
    origin = !origin;
    toggle.textContent = origin ? "show values" : "show steps";
    legend.replaceChildren(origin ? stepKey() : valueKey());
    map.draw();
  } }, "show values");
  const title = `Maxima (${setBy.width}): which step set each value`;
  return [strip(title, [legend, toggle, map.note], map.box), origins(agent)];
}

// How many of the current maxima each earlier step has set.
function origins(agent) {
  const { setBy } = agent.arrays, drawing = shape("svg", { viewBox: `0 0 ${steps} 100`, preserveAspectRatio: "none", "aria-hidden": "true" });
  drawing.style.height = "3.2rem";
  const note = element("span", { class: "soft" }), signals = new Set(agent.signals.flatMap((t) => [t - 1, t]));
  updates.push((t) => {
    const now = Math.min(t, agent.steps - 1), counts = new Map();
    for (let i = 0; i < setBy.width; i++) counts.set(setBy.at(now, i), (counts.get(setBy.at(now, i)) || 0) + 1);
    const most = Math.max(1, ...[...counts].filter(([s]) => s >= 0).map(([, n]) => n));
    const shapes = [...counts].filter(([s]) => s >= 0).map(([s, n]) => shape("rect", {
      x: s, width: 1, y: 100 - (98 * n) / most, height: (98 * n) / most, fill: signals.has(s) ? "#e69f00" : agent.color }));
    drawing.replaceChildren(shape("path", { d: `M0 100H${steps}`, stroke: "var(--line)", class: "thin" }), ...shapes);
    const fromSignals = [...counts].filter(([s]) => signals.has(s)).reduce((sum, [, n]) => sum + n, 0);
    const parts = [`${setBy.width - (counts.get(-1) || 0)} of ${setBy.width} set`];
    if (agent.signals.length) parts.push(`${fromSignals} by transitions that show a signal`);
    note.textContent = parts.join(", ");
  });
  return strip("Origins of the current maxima", [note], plot(drawing), marks(agent));
}

function latentStrips(agent) {
  const { output, variance } = agent.arrays;
  if (!variance) return [values(agent, "Latent", count(output.width), output)];
  const mean = values(agent, "Belief: mean", count(variance.width), output);
  const rows = count(variance.width);
  let most = 1e-9;
  for (let t = 0; t < agent.steps; t++) for (const i of rows) most = Math.max(most, variance.at(t, i));
  const paint = () => { const zero = cssColor("--zero"), plus = cssColor("--plus"); return (t, i) => mix(zero, plus, variance.at(t, i) / most); };
  const map = heatMap(agent, rows, paint, (t, i) => `step ${t}, ${i}: ${short(variance.at(t, i), 3)}`, 6);
  return [mean, strip(`Belief: variance (${variance.width})`, [rampKey("0", "var(--zero), var(--plus)", short(most, 2)), map.note], map.box)];
}

// What the memory is worth: one strip per intervention, with the change of the distribution over actions.
function worth(agent) {
  if (!agent.outcomes.length) return [];
  const made = agent.outcomes.map((outcome, i) => {
    const paint = () => { const zero = cssColor("--zero"), full = cssColor("--minus"); return (t) => mix(zero, full, outcome.distance.at(t)); };
    const map = heatMap(agent, [0], paint, (t) => `step ${t}: changes by ${short(outcome.distance.at(t))}`, 16);
    const effect = element("b", { class: "effect" }, `return ${signed(outcome.return)}`);
    const others = element("span", { class: "soft" }, 
      agent.arrays.spread ? `changes by ${short(outcome.changed)} on average` : `${Math.round(100 * outcome.changed)}% of actions change`);
    const header = element("header", {}, element("h4", {}, key(OUTCOME_COLORS[i], outcome.name)), effect, others, map.note);
    return element("section", { class: "strip outcome", title: outcome.about }, header, map.box);
  });
  const about = element("span", { class: "soft" }, `unchanged: return ${signed(agent.returns.at(-1))}; colored steps: the agent would act differently`);
  return [element("section", { class: "strip" }, element("header", {}, element("h3", {}, "What the memory is worth"), about)), ...made];
}

function card(agent) {
  const dot = element("i");
  dot.style.background = agent.color;
  const decision = element("div", {}, facts(agent), agent.sizes.length ? dividedBars(agent) : bars(agent));
  const strips = [curves(agent), ...neuronStrips(agent), ...latentStrips(agent), ...worth(agent)];
  return element("article", { class: "agent" }, element("h2", {}, dot, agent.label),
    element("div", { class: "now" }, ...(sheets.length ? [picture(agent)] : []), decision), element("div", { class: "strips" }, ...strips));
}

// Controls.
const slider = element("input", { type: "range", min: 0, max: steps - 1, value: 0, "aria-label": "step", oninput: () => go(+slider.value) });
const play = element("button", { type: "button", "aria-label": "play", onclick: () => toggle() }, "▶");
const speed = element("select", { "aria-label": "speed" }, ...[4, 10, 25].map((n) => element("option", { value: n }, `${n} steps/s`)));
const shown = element("output", { "aria-live": "off" });
let timer = null;

function go(next) {
  step = Math.min(Math.max(next, 0), steps - 1);
  slider.value = step;
  const episode = agents[0].episodeEnds.filter((end) => end < step).length + 1, episodes = agents[0].episodeEnds.length;
  shown.textContent = `step ${step} of ${steps - 1}` + (episodes > 1 ? ` · episode ${Math.min(episode, episodes)}` : "");
  for (const update of updates) update(step);
  history.replaceState(null, "", `#step=${step}`);
}

function toggle(on = timer === null) {
  clearInterval(timer);
  timer = null;
  play.textContent = on ? "❚❚" : "▶";
  play.setAttribute("aria-label", on ? "pause" : "play");
  if (!on) return;
  if (step === steps - 1) go(0);
  timer = setInterval(() => (step < steps - 1 ? go(step + 1) : toggle(false)), 1000 / +speed.value);
}
speed.value = 10;
speed.addEventListener("change", () => { if (timer !== null) toggle(true); });

const KEYS = { ArrowRight: () => go(step + 1), ArrowLeft: () => go(step - 1), Home: () => go(0), End: () => go(steps - 1),
  PageDown: () => go(step + 10), PageUp: () => go(step - 10) };
document.addEventListener("keydown", (event) => {
  const { tagName } = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || tagName === "SELECT") return;
  const act = event.key === " " ? (tagName === "BUTTON" ? null : () => toggle()) : KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

const hint = element("span", { class: "keys" }, " Keys: ", element("kbd", {}, "←"), " ", element("kbd", {}, "→"), " step, ", element("kbd", {}, "space"), " play.");
document.getElementById("page").append(
  element("h1", {}, data.title),
  element("p", { class: "about soft" }, data.about, hint),
  element("div", { class: `agents ${agents.length > 1 ? "two" : "one"}` }, ...agents.map(card)),
  element("nav", { class: "controls", "aria-label": "steps" }, element("div", {}, play, slider, shown, speed)),
);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((draw) => draw()));
redraws.forEach((draw) => draw());
go(+(location.hash.match(/step=(\d+)/) || [0, 0])[1]);

// Tables that sort, filter and draw themselves. Without this script the page is whole, only still.
"use strict";

(() => {
  const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const SHAPES = ["circle", "square", "triangle", "diamond"];

  const make = (name, attributes = {}, ...children) => {
    const svg = ["svg", "g", "line", "path", "text"].includes(name);
    const node = svg
      ? document.createElementNS("http://www.w3.org/2000/svg", name)
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const number = (text) =>
    text === "" ? NaN : text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text);
  // a third of the drawing, at about seven units a letter
  const brief = (text, wide) => {
    const most = Math.floor(((wide - 70) / 3 - 20) / 7);
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  };
  const short = (value) => String(Number(value.toPrecision(4)));
  const chooser = (label, options, change) => {
    const select = make("select", {}, ...options.map((each) => make("option", { value: each }, each)));
    select.addEventListener("change", change);
    return [select, make("label", {}, `${label} `, select)];
  };

  for (const section of document.querySelectorAll(".table")) prepare(section);
  // paper has no folds
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
  });

  function prepare(section) {
    const heads = [...section.querySelectorAll("thead th")];
    const body = section.querySelector("tbody");
    const rows = [...body.rows];
    const columns = heads.map((head, k) => ({
      name: head.textContent,
      numeric: head.dataset.kind === "number",
      prose: head.dataset.kind === "prose",
      of: (row) => row.cells[k].dataset.value,
    }));
    const tools = section.querySelector(".tools");
    const filters = [];
    const refresh = () => {
      for (const row of rows) row.hidden = filters.some((accepts) => !accepts(row));
      section.dispatchEvent(new Event("rows"));
    };
    for (const column of columns) {
      const values = [...new Set(rows.map(column.of))];
      const few = values.length > 1 && values.length <= 12 && values.length < rows.length;
      if (column.numeric || column.prose || !few) continue;
      const [select, label] = chooser(column.name, ["all", ...values], refresh);
      filters.push((row) => select.selectedIndex === 0 || column.of(row) === select.value);
      tools.append(label);
    }
    heads.forEach((head, k) => sortable(head, columns[k], heads, body, rows));
    if (columns.filter((each) => each.numeric).length >= 2 && rows.length > 1)
      drawable(section, tools, columns, rows);
  }

  function sortable(head, column, heads, body, rows) {
    const button = make("button", { type: "button", title: "sort by this column" }, column.name);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const rising = head.getAttribute("aria-sort") !== "ascending";
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const compare = (a, b) => {
        const [left, right] = [column.of(a), column.of(b)];
        if (left === "" || right === "") return (left === "") - (right === ""); // nothing comes last
        const order = column.numeric ? number(left) - number(right) : left.localeCompare(right);
        return rising ? order : -order;
      };
      body.append(...[...rows].sort(compare));
    });
  }

  function drawable(section, tools, columns, rows) {
    const numeric = columns.filter((each) => each.numeric);
    const texts = columns.filter((each) => !each.numeric);
    const place = make("div", { class: "chart" });
    place.hidden = true;
    const draw = () => place.hidden || chart(place, columns, rows, choice());
    const named = (name) => columns.find((each) => each.name === name);
    const [x, xLabel] = chooser("across", numeric.map((each) => each.name), draw);
    const [y, yLabel] = chooser("up", numeric.map((each) => each.name), draw);
    const [by, byLabel] = chooser("colour", ["none", ...texts.map((each) => each.name)], draw);
    const choice = () => ({ x: named(x.value), y: named(y.value), by: named(by.value) });
    y.selectedIndex = 1;
    by.selectedIndex = Math.min(1, texts.length);
    const labels = [xLabel, yLabel, byLabel];
    const button = make("button", { type: "button", "aria-expanded": "false" }, "chart");
    button.addEventListener("click", () => {
      place.hidden = !place.hidden;
      for (const label of labels) label.hidden = place.hidden;
      button.setAttribute("aria-expanded", String(!place.hidden));
      draw();
    });
    for (const label of labels) label.hidden = true;
    section.addEventListener("rows", draw);
    tools.append(button, ...labels);
    tools.after(place);
  }

  function chart(place, columns, rows, { x, y, by }) {
    const points = rows
      .filter((row) => !row.hidden)
      .map((row) => ({
        x: number(x.of(row)),
        y: number(y.of(row)),
        group: by ? by.of(row) : "",
        text: columns.map((each) => `${each.name}: ${each.of(row)}`).join("\n"),
      }))
      .filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
    const groups = [...new Set(points.map((point) => point.group))];
    // a narrow screen gets a narrow drawing, so that its letters stay legible
    const wide = Math.max(300, Math.min(760, place.clientWidth || 760));
    const box = { left: 60, right: wide - 16, top: 12 + 18 * Math.ceil(groups.length / 3), bottom: 0 };
    box.bottom = box.top + 250;
    const svg = make("svg", { viewBox: `0 0 ${wide} ${box.bottom + 44}`, role: "img" });
    svg.setAttribute("aria-label", `${y.name} against ${x.name}`);
    const across = scale(points.map((point) => point.x), box.left, box.right);
    const up = scale(points.map((point) => point.y), box.bottom, box.top);
    axes(svg, box, across, up, x.name, y.name);
    groups.forEach((group, k) => {
      const colour = COLOURS[k % COLOURS.length];
      const own = points.filter((point) => point.group === group);
      const sorted = [...own].sort((a, b) => a.x - b.x);
      if (sorted.length > 1 && new Set(sorted.map((point) => point.x)).size === sorted.length) {
        const path = sorted.map((p) => `${across.at(p.x)},${up.at(p.y)}`).join("L");
        svg.append(make("path", { d: `M${path}`, fill: "none", stroke: colour, "stroke-width": 1.5 }));
      }
      for (const p of own) svg.append(mark(across.at(p.x), up.at(p.y), k, colour));
      const [left, top] = [box.left + (k % 3) * ((wide - 70) / 3), 10 + 18 * Math.floor(k / 3)];
      if (by) svg.append(mark(left, top - 4, k, colour), make("text", { x: left + 9, y: top }, brief(group, wide)));
    });
    place.replaceChildren(svg);
    hover(place, svg, points, across, up, wide);
  }

  function scale(values, from, to) {
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (!values.length) [low, high] = [0, 1];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const step = niceStep((high - low) / 4);
    const ticks = [];
    for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12) && ticks.length < 12; k += 1)
      ticks.push(k * step);
    return { ticks, at: (value) => from + ((value - low) / (high - low)) * (to - from) };
  }

  function niceStep(rough) {
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * [1, 2, 5, 10].find((each) => each * power >= rough);
  }

  function axes(svg, box, across, up, xName, yName) {
    for (const tick of up.ticks) {
      const y = up.at(tick);
      svg.append(
        make("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }),
        make("text", { x: box.left - 6, y: y + 4, "text-anchor": "end" }, short(tick)),
      );
    }
    for (const tick of across.ticks)
      svg.append(
        make("text", { x: across.at(tick), y: box.bottom + 16, "text-anchor": "middle" }, short(tick)),
      );
    const middle = (box.top + box.bottom) / 2;
    svg.append(
      make("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
      make("text", { x: (box.left + box.right) / 2, y: box.bottom + 36, "text-anchor": "middle" }, xName),
      make("text", { transform: `translate(14 ${middle}) rotate(-90)`, "text-anchor": "middle" }, yName),
    );
  }

  function mark(x, y, k, colour) {
    const shapes = {
      circle: "m-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0",
      square: "m-3,-3h6v6h-6z",
      triangle: "m0,-4l4,7h-8z",
      diamond: "m0,-4.5l4.5,4.5l-4.5,4.5l-4.5,-4.5z",
    };
    return make("path", { d: `M${x},${y}${shapes[SHAPES[k % SHAPES.length]]}`, fill: colour });
  }

  function hover(place, svg, points, across, up, wide) {
    const tip = make("div", { class: "tip" });
    tip.hidden = true;
    place.append(tip);
    svg.addEventListener("pointerleave", () => (tip.hidden = true));
    svg.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect();
      const factor = wide / frame.width;
      const [x, y] = [(event.clientX - frame.left) * factor, (event.clientY - frame.top) * factor];
      const distance = (p) => Math.hypot(across.at(p.x) - x, up.at(p.y) - y);
      const nearest = points.reduce((a, b) => (!a || distance(b) < distance(a) ? b : a), null);
      tip.hidden = !nearest || distance(nearest) > 30;
      if (tip.hidden) return;
      tip.textContent = nearest.text;
      const left = across.at(nearest.x) / factor;
      // the side with more room, so that it never widens the page
      tip.style.left = left < frame.width / 2 ? `${left + 10}px` : "auto";
      tip.style.right = left < frame.width / 2 ? "auto" : `${frame.width - left + 10}px`;
      tip.style.top = `${up.at(nearest.y) / factor}px`;
    });
  }
})();

"use strict";
// Tables that sort and filter, and matrices that show the value of a cell. The page is whole without this.
(() => {
  const FILTER_FROM = 13;
  const text = (cell) => (cell ? cell.textContent.trim() : "");
  // Units of cells, in bytes, seconds, bits a second, events a second or percent.
  const UNITS = {
    B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50,
    ns: 1e-9, "\u00b5s": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400, "/s": 1, "/min": 1 / 60, "/h": 1 / 3600,
    "b/s": 1, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12, "B/s": 8, "MB/s": 8e6, "GB/s": 8e9,
    "GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15, "msg/s": 1, "kmsg/s": 1e3, "Mmsg/s": 1e6,
    "s/GiB": 1, "ms/GiB": 1e-3, "\u00b5s/GiB": 1e-6, "%": 1, times: 100, "": 1,
  };
  // `at least 4 min 05 s`, `\u22124.0 ms \u00b1 4.4 ms`, `3 of 40`, `60/min`: the first number, the unit, and a smaller unit behind it.
  const NUMBER = /^(?:(?:at|least|most|more|than|over|under|about|up|to|a|factor|of) )*([-+\u2212\u00b1<\u2265>]?)(\d+(?:\.\d+)?)(?: (?:\u00b1|to) [-+\u2212]?[\d.]+)? ?([^\s\d,;.+]*)(?: (\d+(?:\.\d+)?) (min|s)\b)?/;
  // The value of a cell's number, or NaN.
  const worth = (cell) => {
    const [, sign, number, unit, more, smaller] = (cell && NUMBER.exec(text(cell))) || [];
    if (number === undefined) return NaN;
    const one = unit === "of" ? (text(cell).startsWith("a factor") ? 100 : 1) : UNITS[unit];
    const size = number * one + (smaller ? more * UNITS[smaller] : 0);
    return (sign === "-" || sign === "\u2212") ? -size : size;
  };
  const collator = new Intl.Collator("en", { numeric: true });
  let made = 0;
  // Whether a row is about the link or group of this name, and what a link to the row names.
  const isOf = (row, name) => [...row.cells].some((cell) => text(cell) === name);
  const idOf = (row) => (row.id = row.id || "row-" + (made += 1));
  const later = (what) => (window.requestIdleCallback ? requestIdleCallback(what) : setTimeout(what, 50));

  // Rows of a table in an order, those that a filter wants, and of them the first: to lay out thousands takes a browser long.
  const MOST = 100;
  const listing = (table) => {
    const body = table.tBodies[0], rows = [...body.rows];
    const list = { rows, order: rows, has: () => true, most: MOST, told: () => {} };
    let shown = rows, moved = false;
    list.draw = () => {
      const found = list.order.filter(list.has), next = found.slice(0, list.most), stays = new Set(next);
      for (const row of shown) if (!stays.has(row)) row.hidden = true;
      for (const row of next) row.hidden = false;
      if (moved) body.prepend(...next);
      shown = next;
      list.told(found.length, next.length);
    };
    list.arrange = (order) => {
      list.order = order;
      moved = true;
      list.draw();
    };
    // Paper has all rows.
    addEventListener("beforeprint", () => moved && body.append(...list.order));
    return list;
  };

  const sortable = (table, list) => {
    const head = table.tHead && table.tHead.rows[0];
    if (!head || list.rows.length < 2) return;
    const rows = list.rows;
    if (rows.some((row) => row.cells.length !== head.cells.length)) return;
    // Texts that are numbers with a unit, such as 54.10 Gb/s, sort as numbers.
    const measured = (column) => {
      const texts = rows.map((row) => text(row.cells[column])).filter((words) => /^[-+\u2212]?\d/.test(words));
      return texts.length > 0 && texts.every((words) => UNITS[/^[-+\u2212]?\d+(?:\.\d+)? (\S+)$/.exec(words)?.[1]]);
    };
    [...head.cells].forEach((cell, column) => {
      if (!text(cell)) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...cell.childNodes);
      cell.append(button);
      cell.setAttribute("aria-sort", "none");
      // What rows sort by is read once, when somebody sorts.
      let number, keys;
      button.addEventListener("click", () => {
        if (!keys) {
          number = cell.classList.contains("n") || measured(column);
          const key = ({ cells }) => (number ? (cells[column].dataset.value = worth(cells[column])) : text(cells[column]));
          keys = new Map(rows.map((row) => [row, key(row)]));
        }
        // Numbers begin with the largest, words with the first; the third click gives the order of the page back.
        const ways = number ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
        const way = ways[(ways.indexOf(cell.getAttribute("aria-sort")) + 1) % 3];
        for (const other of head.cells) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        cell.setAttribute("aria-sort", way);
        const sign = way === "descending" ? -1 : 1;
        // The sort is stable: what is equal stays in the order of the page.
        const by = (a, b) => {
          const [x, y] = [keys.get(a), keys.get(b)];
          if (!number) return sign * collator.compare(x, y);
          // What has no value stands last, whichever way.
          return isNaN(x) || isNaN(y) ? isNaN(x) - isNaN(y) : sign * (x - y);
        };
        list.arrange(way === "none" ? rows : [...rows].sort(by));
      });
    });
  };

  const filterable = (table, list) => {
    if (list.rows.length < FILTER_FROM) return;
    const box = document.createElement("div"), label = document.createElement("label");
    const input = document.createElement("input"), shown = document.createElement("output"), all = document.createElement("button");
    box.className = "filter";
    input.type = "search";
    input.id = "filter-" + (made += 1);
    label.htmlFor = input.id;
    label.textContent = "Show rows with";
    shown.htmlFor = input.id;
    all.type = "button";
    all.hidden = true;
    box.append(label, input, shown, all);
    const place = table.parentElement.classList.contains("wide") ? table.parentElement : table;
    place.before(box);
    const words = new Map();
    const wordsOf = (row) => {
      if (!words.has(row)) words.set(row, row.textContent.toLowerCase());
      return words.get(row);
    };
    // Read before somebody types, a piece at a time.
    const read = (from) => {
      list.rows.slice(from, from + 500).forEach(wordsOf);
      if (from + 500 < list.rows.length) later(() => read(from + 500));
    };
    later(() => read(0));
    list.told = (found, seen) => {
      const less = found < list.rows.length ? found + " of " + list.rows.length + " rows" : "";
      shown.textContent = seen < found ? "the first " + seen + " of " + found + " rows" : less;
      all.hidden = seen === found;
      all.textContent = "Show all " + found;
    };
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      list.has = (row) => wanted.every((word) => wordsOf(row).includes(word));
      list.draw();
    });
    all.addEventListener("click", () => {
      list.most = Infinity;
      list.draw();
      input.focus();
    });
    if (list.rows.length > list.most) list.draw();
  };

  for (const table of document.querySelectorAll("table:not(.sign)")) {
    if (!table.tBodies[0]) continue;
    const list = listing(table);
    sortable(table, list);
    filterable(table, list);
  }

  // Letters of looks, as crates/report/src/view/section/cells.rs has them, and their classes.
  const LOOKS = {
    M: "m-missing", D: "m-doubtful", F: "m-far", W: "m-much", C: "m-clear", L: "m-little", N: "m-named", U: "m-usual", B: "m-better",
  };
  // The gravest first.
  const GRAVE = "DFWCLNMUB";
  // The drawings of the page say which namespace they are of.
  const NS = document.querySelector("svg")?.namespaceURI;
  const element = (name, attributes, words) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (words !== undefined) made.textContent = words;
    return made;
  };
  const note = document.createElement("div");
  note.className = "js note";
  note.hidden = true;
  document.body.append(note);

  const say = (words, x, y) => {
    note.textContent = words;
    note.hidden = false;
    const box = note.getBoundingClientRect();
    note.style.left = Math.max(4, Math.min(x + 14, document.documentElement.clientWidth - box.width - 4)) + "px";
    note.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
  };

  // The names of a matrix stay in sight while its cells scroll.
  const sticky = (svg) => {
    const figure = svg.closest("figure, .wide"), rows = svg.querySelector("g.rows"), columns = svg.querySelector("g.columns");
    if (!rows || !columns) return;
    const place = () => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      if (!box.width || box.bottom < 0 || box.top > innerHeight) return;
      const down = Math.max(0, Math.min(-box.top * scale, svg.viewBox.baseVal.height - 60));
      const along = Math.max(0, (figure.getBoundingClientRect().left - box.left) * scale);
      rows.setAttribute("transform", "translate(" + along + " 0)");
      columns.setAttribute("transform", "translate(0 " + down + ")");
    };
    addEventListener("scroll", place, { passive: true });
    figure.addEventListener("scroll", place, { passive: true });
  };
  document.querySelectorAll("svg.matrix").forEach(sticky);

  // A grid under pointer, finger and keys: `tell` gives the words of a cell, `choose` opens it.
  const alive = (svg, grid, tell, choose) => {
    const { left, top, side, rows, columns, half } = grid;
    const cursor = element("rect", { class: "cursor", width: side, height: side, visibility: "hidden" });
    svg.append(cursor);
    svg.querySelectorAll("title").forEach((title) => title.remove());
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("role", "application");
    svg.setAttribute("aria-roledescription", "matrix, arrow keys move, Enter opens");
    const live = svg.closest("figure").querySelector("output");
    let at = null;
    const go = (row, column, x, y) => {
      at = [row, column];
      cursor.setAttribute("x", left + column * side);
      cursor.setAttribute("y", top + row * side);
      cursor.setAttribute("visibility", "visible");
      say(tell(row, column), x, y);
    };
    const leave = () => {
      note.hidden = true;
      cursor.setAttribute("visibility", "hidden");
    };
    const under = (event) => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      const column = Math.floor(((event.clientX - box.left) * scale - left) / side);
      const row = Math.floor(((event.clientY - box.top) * scale - top) / side);
      const inside = row >= 0 && row < rows && column >= 0 && column < columns && !(half && column < row);
      return inside ? [row, column] : null;
    };
    svg.addEventListener("pointermove", (event) => {
      const place = under(event);
      if (place) go(...place, event.clientX, event.clientY);
      else leave();
    });
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("click", (event) => {
      const place = under(event);
      if (!place) return;
      go(...place, event.clientX, event.clientY);
      choose(...place);
    });
    const show = (row, column) => {
      const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
      const [x, y] = [(left + (column + 0.5) * side) * scale, (top + (row + 0.5) * side) * scale];
      go(row, column, box.left + x, box.top + y);
      live.textContent = note.textContent;
    };
    svg.addEventListener("focus", () => svg.matches(":focus-visible") && show(...(at || [0, 0])));
    svg.addEventListener("keydown", (event) => {
      const [row, column] = at || [0, 0];
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (step) {
        const [down, along] = [row + step[0], column + step[1]];
        if (half && along < down) return event.preventDefault();
        show(Math.min(rows - 1, Math.max(0, down)), Math.min(columns - 1, Math.max(0, along)));
      } else if (event.key === "Enter" && at) choose(row, column);
      else if (event.key === "Escape") leave();
      else return;
      event.preventDefault();
    });
  };

  const matrix = (holder) => {
    const lines = (of) => (of ? of.split("\n") : []);
    const { units, anchors } = holder.dataset, cluster = units !== undefined;
    const names = [lines(holder.dataset.rows), lines(holder.dataset.columns || holder.dataset.rows)];
    const unitOf = (row) => (cluster ? lines(units)[row] : holder.dataset.unit);
    const legend = holder.nextElementSibling, meanings = {};
    legend.querySelectorAll("i").forEach((key) => (meanings[key.className] = text(key.parentElement)));
    // Words of the legend that are true of a cell by itself. Those of the other looks say from where on a class begins.
    const state = { M: meanings["m-missing"], D: meanings["m-doubtful"], N: meanings["m-named"] };
    const apart = (difference) => {
      if (!difference) return "";
      if (difference === "0") return "at the centre";
      if (difference.endsWith("x")) return difference.slice(0, -1) + " times the centre";
      return difference.replace("-", "") + (difference[0] === "-" ? " % lower" : " % higher") + " than the centre";
    };
    for (const svg of holder.querySelectorAll("svg[data-cells]")) {
      const [edge, head, side] = svg.dataset.grid.split(" ").map(Number), rail = svg.dataset.rail;
      // Above the diagonal: the first column and the last row would be empty.
      const half = svg.dataset.half !== undefined;
      const rows = half ? names[0].slice(0, -1) : names[0], columns = half ? names[1].slice(1) : names[1];
      const square = !half && rows.length === columns.length && rows.every((name, at) => name === columns[at]);
      const cells = svg.dataset.cells.split(";").map((row) => {
        const found = new Map();
        for (const cell of row ? row.split(",") : []) {
          const [, column, look, back, value, difference] = /^([0-9a-z]+)([A-Z])(!?)([^/]*)\/?(.*)$/.exec(cell);
          found.set(parseInt(column, 36), { look, back, value, difference });
        }
        return found;
      });
      const end = (name) => (rail === undefined ? name : name + ":" + rail);
      const link = (row, column) => {
        if (cluster) return columns[column] + ", " + rows[row];
        const ends = [end(rows[row]), end(columns[column])];
        return (cells[row].get(column)?.back ? ends.reverse() : ends).join(" \u2192 ");
      };
      const worth = ({ look, value, difference }, row) => {
        const told = value === "" ? "" : value + " " + unitOf(row);
        return [told, apart(difference), "CWF".includes(look) ? "outlier" : state[look]].filter(Boolean).join(", ");
      };
      const limit = holder.dataset.limit ? "; " + holder.dataset.limit : "";
      const tell = (row, column) => {
        const cell = cells[row].get(column);
        if (cell) return link(row, column) + ": " + worth(cell, row) + (cell.value === "" ? "" : limit);
        // A pair is often measured one way only.
        const back = square && cells[column].get(row);
        const other = back ? "; the other direction, " + link(column, row) + ": " + worth(back, row) : "";
        return link(row, column) + ": not in the plan of this run" + other;
      };
      const pane = document.createElement("div"), live = document.createElement("output");
      pane.className = "js pane";
      live.className = "unseen";
      const scroller = svg.closest("figure"), bad = cluster && svg.querySelector(".outlined");
      scroller.append(live, pane);
      // A narrow screen shows the first bad host of the cluster.
      if (bad) scroller.scrollLeft = bad.getBoundingClientRect().right - scroller.getBoundingClientRect().right + 20;
      // Wherever else the page has a link of this test: lists of its section, and cards of its failures with sizes and cause.
      const places = (name) => {
        const section = svg.closest("section"), found = [];
        for (const body of section.querySelectorAll("tbody")) {
          const row = [...body.rows].find((one) => isOf(one, name));
          if (!row) continue;
          const before = (one) => one.compareDocumentPosition(body) & Node.DOCUMENT_POSITION_FOLLOWING;
          const heading = [...section.querySelectorAll("h2, h3, h4")].filter(before).pop();
          found.push([row, "its row of \u201c" + text(heading) + "\u201d"]);
        }
        for (const card of document.querySelectorAll("#troubles .trouble")) {
          const cause = text(card.querySelector("p")), short = cause.length > 60 ? cause.slice(0, 59) + "\u2026" : cause;
          for (const row of card.querySelectorAll("tbody tr")) {
            if (text(row.cells[0]) !== holder.dataset.test || text(row.cells[1]) !== name) continue;
            found.push([row, text(card.querySelector(".status")) + " at " + text(row.cells[2]) + ": " + short]);
          }
        }
        return found;
      };
      const detail = (row, column, into) => {
        const words = document.createElement("p"), name = link(row, column);
        words.append(tell(row, column) + ". ");
        const test = cluster && document.getElementById(lines(anchors)[row]);
        if (test) {
          const to = document.createElement("a");
          to.href = "#" + test.id;
          to.textContent = "all results of " + text(test.querySelector("h2").firstChild);
          words.append(to, " ");
        }
        for (const [row, label] of cluster ? [] : places(name)) {
          const to = document.createElement("a");
          to.href = "#" + idOf(row);
          to.textContent = label;
          words.append(to, " ");
        }
        into.replaceChildren(words);
        live.textContent = words.textContent;
      };
      if (!svg.dataset.blocks) {
        const grid = { left: edge, top: head, side, rows: rows.length, columns: columns.length, half };
        alive(svg, grid, tell, (row, column) => detail(row, column, pane));
        continue;
      }
      const [starts, tops] = svg.dataset.blocks.split(";").map((list) => list.split(" ").map(Number));
      const range = (list, at, count) => [list[at], at + 1 < list.length ? list[at + 1] : count];
      const block = (row, column) => {
        const [from, to] = range(starts, row, rows.length), [left, right] = range(tops, column, columns.length), found = [];
        for (let one = from; one < to; one += 1) {
          for (const [other, cell] of cells[one]) if (other >= left && other < right) found.push([one, other, cell]);
        }
        found.sort((a, b) => GRAVE.indexOf(a[2].look) - GRAVE.indexOf(b[2].look));
        return { from, to, left, right, found };
      };
      const named = (list, from, to) => (to - from > 1 ? list[from] + " \u2026 " + list[to - 1] : list[from]);
      const titled = (from, to, left, right) =>
        named(rows, from, to) + (cluster ? ", " : " \u2192 ") + named(columns, left, right);
      const open = (row, column) => {
        const { from, to, left, right, found } = block(row, column);
        const names = [...rows.slice(from, to), ...columns.slice(left, right)];
        const edge = Math.max(...names.map((name) => name.length)) * 6.5 + 14;
        const size = Math.max(14, Math.min(28, Math.floor((holder.clientWidth - edge) / (right - left))));
        const [width, height] = [edge + (right - left) * size + 2, edge + (to - from) * size + 2];
        const title = titled(from, to, left, right);
        const inner = element("svg", { class: "matrix", viewBox: "0 0 " + width + " " + height, "aria-label": title });
        inner.style.width = width + "px";
        const area = { class: "m-none", x: edge, y: edge, width: (right - left) * size, height: (to - from) * size };
        inner.append(element("rect", area));
        for (let one = from; one < to; one += 1) {
          const y = edge + (one - from + 0.5) * size + 4;
          inner.append(element("text", { class: "f-ink", x: edge - 6, y, "text-anchor": "end" }, rows[one]));
        }
        for (let one = left; one < right; one += 1) {
          const at = "translate(" + (edge + (one - left + 0.5) * size + 4) + " " + (edge - 6) + ") rotate(-90)";
          inner.append(element("text", { class: "f-ink", transform: at }, columns[one]));
        }
        for (const [one, other, { look }] of found) {
          const [x, y] = [edge + (other - left) * size, edge + (one - from) * size];
          inner.append(element("rect", { class: LOOKS[look], x, y, width: size - 1, height: size - 1 }));
        }
        const heading = document.createElement("h4"), scroll = document.createElement("div"), words = document.createElement("div");
        heading.textContent = title;
        scroll.className = "wide";
        scroll.append(inner);
        pane.replaceChildren(heading, scroll, words);
        const grid = { left: edge, top: edge, side: size, rows: to - from, columns: right - left };
        alive(inner, grid, (a, b) => tell(from + a, left + b), (a, b) => detail(from + a, left + b, words));
        inner.focus({ preventScroll: true });
        pane.scrollIntoView({ block: "nearest" });
      };
      const sum = (row, column) => {
        const { from, to, left, right, found } = block(row, column);
        const title = titled(from, to, left, right) + ": ", noun = cluster ? " host" : " link";
        if (!found.length) return title + "no" + noun + " in the plan of this run";
        const [one, other] = found[0];
        const many = found.length === 1 ? noun + ": " : noun + "s, the worst: ";
        return title + found.length + many + tell(one, other);
      };
      alive(svg, { left: edge, top: head, side, rows: starts.length, columns: tops.length }, sum, open);
    }
  };
  document.querySelectorAll(".matrices[data-rows]").forEach(matrix);

  // The values of a chart at the point nearest to the pointer.
  for (const svg of document.querySelectorAll("svg.chart")) {
    const points = [...svg.querySelectorAll("circle.tip")].map((dot) => {
      const words = dot.textContent;
      dot.replaceChildren();
      return { dot, words, x: Number(dot.getAttribute("cx")), y: Number(dot.getAttribute("cy")) };
    });
    if (!points.length) continue;
    let last = null;
    const leave = () => {
      note.hidden = true;
      if (last) last.dot.classList.remove("at");
    };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
      const far = (point) => Math.hypot(point.x - x, (point.y - y) / 3);
      leave();
      last = points.reduce((near, point) => (far(point) < far(near) ? point : near));
      last.dot.classList.add("at");
      say(last.words, event.clientX, event.clientY);
    });
    svg.addEventListener("pointerleave", leave);
  }

  // An offender of a verdict leads to its row in the first list of its test that has it, or else to the test.
  const leads = (to) => {
    const section = document.getElementById(decodeURIComponent(to.hash.slice(1)))?.closest("section");
    const row = [...(section ? section.querySelectorAll("tbody tr") : [])].find((one) => isOf(one, to.dataset.link));
    if (row) to.hash = idOf(row);
  };
  // Looked for when it is wanted: a page has thousands of rows.
  for (const to of document.querySelectorAll("a[data-link]")) to.addEventListener("click", () => leads(to), { once: true });

  // What scrolls sideways and holds nothing to focus must be reached by keys itself.
  const reachable = () => {
    for (const box of document.querySelectorAll(".wide, .matrices figure")) {
      const scrolls = box.scrollWidth > box.clientWidth && !box.querySelector("a, button, input, summary, svg[tabindex]");
      if (!scrolls) continue;
      box.tabIndex = 0;
      // A figure is a group with the name of its caption.
      if (box.tagName === "FIGURE") continue;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", "scrolls sideways");
    }
  };
  addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);
  reachable();

  // A link to what lies inside closed details opens them.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    if (target.tagName === "DETAILS") target.open = true;
    if (target.tagName === "TR") target.hidden = false;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
})();

"use strict";
// Tables that sort and filter, and matrices that tell their cells. The page is whole without this.
(() => {
  const FILTER_FROM = 13;
  const text = (cell) => (cell ? cell.textContent.trim() : "");
  // A number of a cell, or NaN: what the page says it is worth, or else the text itself.
  const worth = (cell) => {
    if (!cell) return NaN;
    const told = cell.getAttribute("data-value");
    const words = told === null ? text(cell).replace("\u2212", "-") : told;
    return words === "" ? NaN : Number(words);
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
    // Texts that are numbers with their units, such as 54.10 Gb/s, sort as numbers: each that begins with a digit says its worth.
    const measured = (column) => {
      const cells = rows.map((row) => row.cells[column]).filter((cell) => /^[-+\u2212]?\d/.test(text(cell)));
      return cells.length > 0 && cells.every((cell) => cell.hasAttribute("data-value"));
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
          keys = new Map(rows.map((row) => [row, number ? worth(row.cells[column]) : text(row.cells[column])]));
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

  // A grid under pointer, finger and keys: `tell` gives the words of a cell, `choose` opens it.
  const alive = (svg, grid, tell, choose) => {
    const { margin, side, rows, columns } = grid;
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
      cursor.setAttribute("x", margin + column * side);
      cursor.setAttribute("y", margin + row * side);
      cursor.setAttribute("visibility", "visible");
      note.textContent = tell(row, column);
      note.hidden = false;
      const box = note.getBoundingClientRect();
      note.style.left = Math.max(4, Math.min(x + 14, document.documentElement.clientWidth - box.width - 4)) + "px";
      note.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
    };
    const leave = () => {
      note.hidden = true;
      cursor.setAttribute("visibility", "hidden");
    };
    const under = (event) => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      const column = Math.floor(((event.clientX - box.left) * scale - margin) / side);
      const row = Math.floor(((event.clientY - box.top) * scale - margin) / side);
      return row >= 0 && row < rows && column >= 0 && column < columns ? [row, column] : null;
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
      const [x, y] = [(margin + (column + 0.5) * side) * scale, (margin + (row + 0.5) * side) * scale];
      go(row, column, box.left + x, box.top + y);
      live.textContent = note.textContent;
    };
    svg.addEventListener("focus", () => svg.matches(":focus-visible") && show(...(at || [0, 0])));
    svg.addEventListener("keydown", (event) => {
      const [row, column] = at || [0, 0];
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (step) {
        show(Math.min(rows - 1, Math.max(0, row + step[0])), Math.min(columns - 1, Math.max(0, column + step[1])));
      } else if (event.key === "Enter" && at) choose(row, column);
      else if (event.key === "Escape") leave();
      else return;
      event.preventDefault();
    });
  };

  const matrix = (holder) => {
    const rows = holder.dataset.rows.split("\n");
    const columns = holder.dataset.columns ? holder.dataset.columns.split("\n") : rows;
    const legend = holder.nextElementSibling, meanings = {};
    legend.querySelectorAll("i").forEach((key) => (meanings[key.className] = text(key.parentElement)));
    // Words of the legend that are true of a cell by itself. Those of the other looks tell from where on a class begins.
    const state = { M: meanings["m-missing"], D: meanings["m-doubtful"], N: meanings["m-named"] };
    const apart = (difference) => {
      if (!difference) return "";
      if (difference === "0") return "at the centre";
      if (difference.endsWith("x")) return difference.slice(0, -1) + " times the centre";
      return difference.replace("-", "") + (difference[0] === "-" ? " % lower" : " % higher") + " than the centre";
    };
    for (const svg of holder.querySelectorAll("svg[data-cells]")) {
      const [margin, side] = svg.dataset.grid.split(" ").map(Number), rail = svg.dataset.rail;
      const cells = svg.dataset.cells.split(";").map((row) => {
        const found = new Map();
        for (const cell of row ? row.split(",") : []) {
          const [, column, look, value, difference] = /^([0-9a-z]+)([A-Z])([^/]*)\/?(.*)$/.exec(cell);
          found.set(parseInt(column, 36), { look, value, difference });
        }
        return found;
      });
      const end = (name) => (rail === undefined ? name : name + ":" + rail);
      const link = (row, column) => end(rows[row]) + " \u2192 " + end(columns[column]);
      const worth = ({ look, value, difference }) => {
        const told = value === "" ? "" : value + " " + holder.dataset.unit;
        return [told, apart(difference), "CWF".includes(look) ? "stands out" : state[look]].filter(Boolean).join(", ");
      };
      const tell = (row, column) => {
        const cell = cells[row].get(column);
        if (cell) return link(row, column) + ": " + worth(cell);
        // A pair is often measured one way only.
        const back = rows === columns && cells[column].get(row);
        const other = back ? "; the other direction, " + link(column, row) + ": " + worth(back) : "";
        return link(row, column) + ": not in the plan of this run" + other;
      };
      const pane = document.createElement("div"), live = document.createElement("output");
      pane.className = "js pane";
      live.className = "unseen";
      svg.closest("figure").append(live, pane);
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
        for (const [row, label] of places(name)) {
          const to = document.createElement("a");
          to.href = "#" + idOf(row);
          to.textContent = label;
          words.append(to, " ");
        }
        into.replaceChildren(words);
        live.textContent = words.textContent;
      };
      if (!svg.dataset.blocks) {
        const grid = { margin, side, rows: rows.length, columns: columns.length };
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
      const open = (row, column) => {
        const { from, to, left, right, found } = block(row, column);
        const names = [...rows.slice(from, to), ...columns.slice(left, right)];
        const edge = Math.max(...names.map((name) => name.length)) * 6.5 + 14;
        const size = Math.max(14, Math.min(28, Math.floor((holder.clientWidth - edge) / (right - left))));
        const [width, height] = [edge + (right - left) * size + 2, edge + (to - from) * size + 2];
        const title = named(rows, from, to) + " \u2192 " + named(columns, left, right);
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
        const grid = { margin: edge, side: size, rows: to - from, columns: right - left };
        alive(inner, grid, (a, b) => tell(from + a, left + b), (a, b) => detail(from + a, left + b, words));
        inner.focus({ preventScroll: true });
        pane.scrollIntoView({ block: "nearest" });
      };
      const sum = (row, column) => {
        const { from, to, left, right, found } = block(row, column);
        const title = named(rows, from, to) + " \u2192 " + named(columns, left, right) + ": ";
        if (!found.length) return title + "no link in the plan of this run";
        const [one, other] = found[0];
        return title + found.length + (found.length === 1 ? " link" : " links, the worst look: ") + (found.length === 1 ? ", " : "") + tell(one, other);
      };
      alive(svg, { margin, side, rows: starts.length, columns: tops.length }, sum, open);
    }
  };
  document.querySelectorAll(".matrices[data-rows]").forEach(matrix);

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
    for (const box of document.querySelectorAll(".wide, .forest, .matrices figure, .figures figure")) {
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

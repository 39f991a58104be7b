"use strict";
// Tables that sort and filter. The page is whole without this.
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

  const sortable = (table) => {
    const head = table.tHead && table.tHead.rows[0], body = table.tBodies[0];
    if (!head || !body || body.rows.length < 2) return;
    const rows = [...body.rows];
    if (rows.some((row) => row.cells.length !== head.cells.length)) return;
    [...head.cells].forEach((cell, column) => {
      if (!text(cell)) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...cell.childNodes);
      cell.append(button);
      cell.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        // Numbers begin with the largest, words with the first; the third click gives the order of the page back.
        const number = cell.classList.contains("n");
        const ways = number ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
        const way = ways[(ways.indexOf(cell.getAttribute("aria-sort")) + 1) % 3];
        for (const other of head.cells) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        cell.setAttribute("aria-sort", way);
        const sign = way === "descending" ? -1 : 1;
        const order = rows.map((row, at) => ({ row, at, cell: row.cells[column] }));
        if (way !== "none") {
          order.sort((a, b) => {
            if (number) {
              const [x, y] = [worth(a.cell), worth(b.cell)];
              // What has no value stands last, whichever way.
              if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y) || a.at - b.at;
              return sign * (x - y) || a.at - b.at;
            }
            return sign * collator.compare(text(a.cell), text(b.cell)) || a.at - b.at;
          });
        }
        body.append(...order.map((one) => one.row));
      });
    });
  };

  const filterable = (table) => {
    const body = table.tBodies[0];
    if (!body || body.rows.length < FILTER_FROM) return;
    const box = document.createElement("div"), label = document.createElement("label");
    const input = document.createElement("input"), shown = document.createElement("output");
    box.className = "filter";
    input.type = "search";
    input.id = "filter-" + (made += 1);
    label.htmlFor = input.id;
    label.textContent = "Show rows with";
    shown.htmlFor = input.id;
    box.append(label, input, shown);
    const place = table.parentElement.classList.contains("wide") ? table.parentElement : table;
    place.before(box);
    const rows = [...body.rows];
    const words = rows.map((row) => row.textContent.toLowerCase());
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      rows.forEach((row, at) => {
        row.hidden = !wanted.every((word) => words[at].includes(word));
        if (!row.hidden) left += 1;
      });
      shown.textContent = wanted.length ? left + " of " + rows.length + " rows" : "";
    });
  };

  for (const table of document.querySelectorAll("table:not(.sign)")) {
    sortable(table);
    filterable(table);
  }

  // A link to what lies inside closed details opens them.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
})();

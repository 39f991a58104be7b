"use strict";
// Asks for this page again and shows what is new in it. The page is whole without this.
(() => {
  const PATIENCE = 3;
  const main = document.getElementById("main");
  const every = Number(document.body.getAttribute("data-every")) * 1000;
  const told = document.createElement("p");
  told.className = "bad";
  told.setAttribute("role", "status");
  main.before(told);
  let silent = 0;
  // What scrolls sideways must be reached by keys, and stays where it was.
  const boxes = () => [...main.querySelectorAll(".wide")];
  const reachable = () => {
    for (const box of boxes()) {
      if (box.scrollWidth <= box.clientWidth) continue;
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", "scrolls sideways");
    }
  };
  addEventListener("resize", reachable);
  reachable();
  const again = async () => {
    try {
      const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(30000) });
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("main");
      if (fresh) {
        const focused = document.activeElement && main.contains(document.activeElement) ? document.activeElement : null;
        // A table is known by its section.
        const section = (box) => box.closest("section")?.id;
        const places = new Map(boxes().map((box) => [section(box), box.scrollLeft]));
        const id = focused ? focused.id : "", of = focused && focused.matches(".wide") ? section(focused) : "";
        main.replaceChildren(...fresh.childNodes);
        reachable();
        for (const box of boxes()) {
          box.scrollLeft = places.get(section(box)) || 0;
          if (of && section(box) === of) box.focus({ preventScroll: true });
        }
        if (id && document.getElementById(id)) document.getElementById(id).focus({ preventScroll: true });
        document.title = page.title;
      }
      silent = 0;
      told.textContent = "";
    } catch {
      silent += 1;
    }
    if (silent >= PATIENCE) {
      told.textContent = "railgauge no longer answers: the run has ended, or was stopped. What follows is the last that it told; the report is in the run directory.";
      return;
    }
    setTimeout(again, every);
  };
  if (every > 0) setTimeout(again, every);
})();
